"""The main job, as deploy/demo.sh shows it: found, diagnosed, advised, routed, returned; ledgers exact."""
import os
import subprocess

from hotlane_test.process import REPO


def test_the_demonstration_ends_well():
    done = subprocess.run(["/usr/bin/python3", "-B", str(REPO / "deploy" / "demo.py")],
                          capture_output=True, text=True, timeout=800, env=dict(os.environ))
    print(done.stdout[-6000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert "lost 0, doubled 0" in done.stdout
    assert "hot_row" in done.stdout and "busy_lane" in done.stdout
