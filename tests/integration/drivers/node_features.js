// Features of node-postgres, its cursors and its streams: PORT DATABASE in, "ok NAME" lines out.
'use strict';
const assert = require('assert');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');

const config = { host: '127.0.0.1', port: Number(process.argv[2]), user: 'app', database: process.argv[3] };

const features = {
  async 'simple and parameterised queries'(c) {
    assert.deepStrictEqual((await c.query('SELECT 1 AS n, NULL AS nothing')).rows, [{ n: 1, nothing: null }]);
    const r = await c.query('SELECT $1::int + 1 AS n, $2::text AS t, $3::jsonb AS j', [41, 'é', { a: [1] }]);
    assert.deepStrictEqual(r.rows, [{ n: 42, t: 'é', j: { a: [1] } }]);
  },
  async 'several results of one message'(c) {
    const r = await c.query('SELECT 1 AS a; SELECT 2 AS b');
    assert.deepStrictEqual(r.map((x) => x.rows[0]), [{ a: 1 }, { b: 2 }]);
  },
  async 'named statements, from many queries in flight'(c) {
    const asked = [];
    for (let i = 0; i < 100; i++) // queued by the driver, which sends the next when the last is answered
      asked.push(c.query({ name: `n${i % 5}`, text: `SELECT $1::int AS n, ${i % 5} AS k`, values: [i] }));
    const got = await Promise.all(asked);
    got.forEach((r, i) => assert.deepStrictEqual(r.rows, [{ n: i, k: i % 5 }]));
  },
  async 'an error leaves the client usable'(c) {
    await assert.rejects(c.query('SELECT 1/0'), { code: '22012' });
    await assert.rejects(c.query('SELECT $1::int', ['x']), { code: '22P02' });
    await assert.rejects(c.query({ name: 'broken', text: 'SELEKT' }), { code: '42601' });
    assert.strictEqual((await c.query('SELECT 5 AS n')).rows[0].n, 5);
  },
  async 'binary results'(c) {
    const text = 'SELECT $1::int4 AS n, $2::bool AS b, $3::text AS t';
    const r = await c.query({ text, values: [7, true, 'é'], binary: true });
    assert.deepStrictEqual(r.rows, [{ n: 7, b: true, t: 'é' }]);
  },
  async 'a cursor, read in parts, closed early'(c) {
    const cursor = c.query(new Cursor('SELECT generate_series(1, $1::int) AS n', [1000]));
    assert.deepStrictEqual((await cursor.read(3)).map((r) => r.n), [1, 2, 3]);
    assert.strictEqual((await cursor.read(500)).length, 500);
    await cursor.close();
    assert.strictEqual((await c.query('SELECT 1 AS n')).rows[0].n, 1);
  },
  async 'a cursor that fails on the way'(c) {
    const cursor = c.query(new Cursor('SELECT 1/(5 - i) AS n FROM generate_series(1, 9) i'));
    assert.strictEqual((await cursor.read(2)).length, 2);
    await assert.rejects(cursor.read(10), { code: '22012' });
    assert.strictEqual((await c.query('SELECT 1 AS n')).rows[0].n, 1);
  },
  async 'a stream of rows, to the end and broken off'(c) {
    let sum = 0;
    for await (const row of c.query(new QueryStream('SELECT generate_series(1, 5000) AS n', [], { batchSize: 100 }))) sum += row.n;
    assert.strictEqual(sum, 12502500);
    let seen = 0;
    for await (const row of c.query(new QueryStream('SELECT generate_series(1, 5000) AS n', [], { batchSize: 10 })))
      if (row && ++seen === 25) break;
    assert.strictEqual((await c.query('SELECT 1 AS n')).rows[0].n, 1);
  },
  async 'transactions'(c) {
    await c.query('CREATE TABLE IF NOT EXISTS node_t (n int)');
    await c.query('BEGIN');
    await c.query('INSERT INTO node_t VALUES ($1)', [1]);
    await c.query('ROLLBACK');
    assert.strictEqual((await c.query('SELECT count(*)::int AS n FROM node_t')).rows[0].n, 0);
    await c.query('DROP TABLE node_t');
  },
  async 'notifications'(c) {
    const heard = new Promise((resolve) => c.once('notification', resolve));
    await c.query('LISTEN node_channel');
    const other = new Client(config);
    await other.connect();
    await other.query("SELECT pg_notify('node_channel', 'hello')");
    await other.end();
    assert.strictEqual((await heard).payload, 'hello');
    await c.query('UNLISTEN *');
  },
  async 'notices'(c) {
    const heard = new Promise((resolve) => c.once('notice', resolve));
    await c.query("DO $$ BEGIN RAISE NOTICE 'careful'; END $$");
    assert.strictEqual((await heard).message, 'careful');
  },
  async 'a statement time-out of the driver'() {
    const c = new Client({ ...config, statement_timeout: 100 });
    await c.connect();
    await assert.rejects(c.query('SELECT pg_sleep(20)'), { code: '57014' });
    assert.strictEqual((await c.query('SHOW statement_timeout')).rows[0].statement_timeout, '100ms');
    await c.end();
  },
  async 'a pool with more work than clients'() {
    const pool = new Pool({ ...config, max: 5 });
    const got = await Promise.all([...Array(60).keys()].map((i) => pool.query({ name: 'p', text: 'SELECT $1::int AS n', values: [i] })));
    got.forEach((r, i) => assert.strictEqual(r.rows[0].n, i));
    await pool.end();
  },
};

(async () => {
  for (const [name, run] of Object.entries(features)) {
    const c = new Client(config);
    await c.connect();
    await run(c);
    await c.end();
    console.log(`ok ${name}`);
  }
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
