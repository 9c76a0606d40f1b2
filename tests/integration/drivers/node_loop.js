// One connection of node-postgres that asks by a named statement until its stdin ends: PORT DATABASE in, the
// number of answers out. A second prepare of the same name by the driver does not happen: it remembers.
'use strict';
const { Client } = require('pg');

(async () => {
  const c = new Client({ host: '127.0.0.1', port: Number(process.argv[2]), user: 'app', database: process.argv[3] });
  await c.connect();
  let over = false;
  process.stdin.on('end', () => (over = true)).resume();
  let answers = 0;
  while (!over) {
    const r = await c.query({ name: 'by key', text: 'SELECT v FROM t WHERE id = $1', values: [1 + (answers % 3)] });
    if (r.rows[0].v !== `value ${1 + (answers % 3)}`) throw new Error(JSON.stringify(r.rows));
    if (++answers % 50 === 0) console.log(answers);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await c.end();
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
