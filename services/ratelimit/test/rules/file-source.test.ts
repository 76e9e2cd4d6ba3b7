import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { describeNotAtomic } from '../../src/config/stores.ts';
import { loadRuleFiles } from '../../src/rules/file-source.ts';
import { fileSource, followRules, limitOf, rulesText } from '../support/rule-folder.ts';
import { startApp } from '../support/start-app.ts';

t.test('in place: a write, a replacement, a new file and a removal are loaded', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const rules = await followRules(t, folder.path);
  await rules.inForce('a', 1);

  folder.write('config/a.yaml', rulesText('a', 2));
  await rules.inForce('a', 2);

  folder.write('beside.yaml', rulesText('a', 3));
  renameSync(join(folder.path, 'beside.yaml'), join(folder.path, 'config/a.yaml'));
  await rules.inForce('a', 3);

  folder.write('config/sub/folder/b.yaml', rulesText('b', 4));
  await rules.inForce('b', 4);

  unlinkSync(join(folder.path, 'config/sub/folder/b.yaml'));
  await rules.inForce('b', undefined);
  t.equal(limitOf(rules.loads, 'a'), 3);
});

t.test('in place: a chmod reloads', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const rules = await followRules(t, folder.path);
  chmodSync(join(folder.path, 'config/a.yaml'), 0o600);
  t.ok(await awaitUntil(() => rules.loads.length > 1, { what: 'a second load' }));
});

t.test('RUNTIME_WATCH_ROOT: a new target of the root link is loaded, an edit below it is not', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('v1/config/a.yaml', rulesText('a', 1));
  folder.write('v2/config/a.yaml', rulesText('a', 2));
  folder.swapLink('current', 'v1');
  const rules = await followRules(t, join(folder.path, 'current'), { watchRoot: true });
  await rules.inForce('a', 1);

  folder.write('v1/config/a.yaml', rulesText('a', 9));
  folder.swapLink('current', 'v2');
  await rules.inForce('a', 2);
  t.notOk(rules.loads.some((load) => limitOf([load], 'a') === 9));
});

t.test('RUNTIME_WATCH_ROOT: the root itself may be a folder that is replaced', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('current/config/a.yaml', rulesText('a', 1));
  folder.write('next/config/a.yaml', rulesText('a', 2));
  const rules = await followRules(t, join(folder.path, 'current'), { watchRoot: true });
  renameSync(join(folder.path, 'current'), join(folder.path, 'old'));
  renameSync(join(folder.path, 'next'), join(folder.path, 'current'));
  await rules.inForce('a', 2);
});

for (const watchRoot of [true, false]) {
  t.test(`a ConfigMap mount loads once for each change (RUNTIME_WATCH_ROOT=${watchRoot})`, async (t) => {
    const folder = makeTextFolder(t);
    const update = (version: string, limit: number): void => {
      folder.write(`config/..${version}/a.yaml`, rulesText('a', limit));
      folder.write(`config/..${version}/b.yaml`, rulesText('b', limit));
      folder.swapLink('config/..data', `..${version}`);
    };
    update('2026_01_01', 1);
    symlinkSync('..data/a.yaml', join(folder.path, 'config/a.yaml'));
    symlinkSync('..data/b.yaml', join(folder.path, 'config/b.yaml'));
    const rules = await followRules(t, folder.path, { watchRoot });
    await rules.inForce('b', 1);

    for (const [i, version] of ['2026_01_02', '2026_01_03', '2026_01_04'].entries()) {
      update(version, i + 2);
      rmSync(join(folder.path, `config/..2026_01_0${i + 1}`), { recursive: true });
      await rules.inForce('a', i + 2);
      t.equal(limitOf(rules.loads, 'b'), i + 2);
    }
    t.equal(rules.loads.length, 4);
    t.ok(rules.loads.every(({ ok }) => ok));
  });
}

t.test('an invalid edit is reported with file, line and column; the next valid one is loaded', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const rules = await followRules(t, folder.path);
  folder.write('config/a.yaml', 'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unit: fortnight }\n');
  t.strictSame(await rules.problemsOf(2), ["config/a.yaml:4:25: invalid rate limit unit 'fortnight'"]);
  folder.write('config/a.yaml', rulesText('a', 5));
  await rules.inForce('a', 5);
});

t.test('one load reports all problems of all files, including read errors', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', 'descriptors: []\n');
  folder.write('config/b.yaml', 'domain: [');
  folder.write('config/c.yaml', rulesText('c', 1));
  symlinkSync('nowhere', join(folder.path, 'config/d.yaml'));
  writeFileSync(join(folder.path, 'config/e.yaml'), Buffer.from([0x64, 0xff, 0xfe]));
  const rules = await followRules(t, folder.path);
  const problems = await rules.problemsOf(1);
  t.equal(problems.length, 4);
  t.match(problems[0], /^config\/d\.yaml: error loading config file: ENOENT/);
  t.equal(problems[1], 'config/e.yaml: error loading config file: the file is not UTF-8');
  t.equal(problems[2], 'config/a.yaml:1:1: config file cannot have empty domain');
  t.match(problems[3], /^config\/b\.yaml:1:10: error loading config file: /);
});

t.test('a removed folder is a failed load, and is loaded once it exists again', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const rules = await followRules(t, folder.path);
  rmSync(join(folder.path, 'config'), { recursive: true });
  t.match((await rules.problemsOf(2))[0], /^config: error loading config file: ENOENT/);
  folder.write('config/a.yaml', rulesText('a', 2));
  await rules.inForce('a', 2);
});

t.test('removing all files is a valid load without rules', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const rules = await followRules(t, folder.path);
  unlinkSync(join(folder.path, 'config/a.yaml'));
  await rules.inForce('a', undefined);
  const last = rules.loads.at(-1);
  t.equal(last?.ok === true ? last.rules.domains.size : undefined, 0);
});

t.test('a file replaced by a folder of the same name is read as a folder', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const rules = await followRules(t, folder.path);
  unlinkSync(join(folder.path, 'config/a.yaml'));
  folder.write('config/a.yaml/inside.yaml', rulesText('a', 2));
  await rules.inForce('a', 2);
});

t.test('sockets and pipes are not read', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  folder.makePipe('config/pipe');
  symlinkSync('pipe', join(folder.path, 'config/link-to-pipe.yaml'));
  const socket = createServer();
  t.teardown(() => socket.close());
  await new Promise<void>((resolve) => socket.listen(join(folder.path, 'config/socket'), resolve));
  const rules = await followRules(t, folder.path);
  await rules.inForce('a', 1);
  t.equal(rules.loads.length, 1);
});

t.test('dot files are read unless RUNTIME_IGNOREDOTFILES is true', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/.a.yaml', rulesText('a', 1));
  folder.write('config/.hidden/b.yaml', rulesText('b', 1));
  folder.write('config/c.yaml', rulesText('c', 1));
  const domains = async (ignoreDotFiles: boolean): Promise<unknown> => {
    const { loads } = await followRules(t, folder.path, { ignoreDotFiles });
    return loads[0]?.ok === true ? [...loads[0].rules.domains.keys()] : undefined;
  };
  t.strictSame(await domains(false), ['a', 'b', 'c']);
  t.strictSame(await domains(true), ['c']);
});

t.test('a link to a folder is not followed, and a warning says so', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('elsewhere/b.yaml', rulesText('b', 1));
  folder.write('config/a.yaml', rulesText('a', 1));
  symlinkSync('../elsewhere', join(folder.path, 'config/link'));
  symlinkSync('.', join(folder.path, 'config/self'));
  const { loads } = await followRules(t, folder.path);
  const [load] = loads;
  t.strictSame(load?.ok === true ? [...load.rules.domains.keys()] : undefined, ['a']);
  t.strictSame(
    load?.ok === true ? load.warnings.map(({ source, message }) => `${source}: ${message}`) : undefined,
    [
      'config/link: a link to a directory is not followed',
      'config/self: a link to a directory is not followed',
    ],
  );
});

t.test('MERGE_DOMAIN_CONFIG lets files share a domain', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('d', 1, ['k']));
  folder.write('config/b.yaml', rulesText('d', 1, ['other']));
  const apart = await followRules(t, folder.path);
  t.strictSame(await apart.problemsOf(1), ["config/b.yaml:1:9: duplicate domain 'd' in config file"]);
  const [load] = (await followRules(t, folder.path, { mergeDomains: true })).loads;
  t.equal(load?.ok === true ? load.rules.ruleCount : undefined, 2);
});

t.test('with memcached, other algorithms and policies that need failures are problems', async (t) => {
  const folder = makeTextFolder(t);
  folder.write(
    'config/a.yaml',
    'domain: d\non_store_failure: allow\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 1, algorithm: token_bucket, on_store_failure: deny }\n  - key: l\n    rate_limit: { unit: day, requests_per_unit: 1, algorithm: token }\n',
  );
  t.strictSame(await (await followRules(t, folder.path, { forMemcached: true })).problemsOf(1), [
    'config/a.yaml:5:63: the counter store has no token_bucket: use fixed_window, or another store',
    "config/a.yaml:5:95: memcached fails open, so that on_store_failure 'deny' would have no effect: use allow, or another store",
    "config/a.yaml:7:63: invalid algorithm 'token': expected one of fixed_window, sliding_window, token_bucket, concurrency",
  ]);
});

t.test('a store that cannot decide limits together refuses atomic domains', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', 'domain: d\natomic: true\ndescriptors: []\n');
  const redis = { backendType: 'redis', redisType: 'single', redisPerSecond: false } as const;
  const stores = {
    memcached: { ...redis, backendType: 'memcache' },
    'a Redis Cluster': { ...redis, redisType: 'cluster' },
    'a Redis with another one for seconds': { ...redis, redisPerSecond: true },
  } as const;
  for (const [name, settings] of Object.entries(stores)) {
    const notAtomic = describeNotAtomic(settings);
    t.strictSame(await (await followRules(t, folder.path, { notAtomic })).problemsOf(1), [
      `config/a.yaml:2:9: ${name} cannot decide limits together: remove atomic, or use memory, one Redis, or Redis Sentinel`,
    ]);
  }
  for (const settings of [redis, { ...redis, redisType: 'sentinel' } as const]) {
    t.equal(describeNotAtomic(settings), undefined);
  }
  t.equal(describeNotAtomic({ ...redis, backendType: 'memory', redisType: 'cluster' }), undefined);
});

t.test('a month without time_zone is noted, unless the service counts those of the calendar', async (t) => {
  const rules = {
    'a.yaml': 'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: month, requests_per_unit: 1 } }]\n',
  };
  for (const [calendar, notes] of [
    ['false', 1],
    ['true', 0],
  ] as const) {
    const { logLines } = await startApp(t, { rules, env: { USE_CALENDAR_MONTH_RATE_LIMIT: calendar } });
    const found = logLines.filter(({ problem }) => /unit month is 30 days/.test(String(problem)));
    t.equal(found.length, notes);
  }
});

t.test('RUNTIME_SUBDIRECTORY may be empty, and RUNTIME_APPDIRECTORY too', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('sub/app/a.yaml', rulesText('a', 1));
  const spellings = [
    { subdirectory: 'sub', appDirectory: 'app' },
    { subdirectory: '', appDirectory: 'sub/app' },
    { subdirectory: 'sub/app', appDirectory: '' },
    { subdirectory: '', appDirectory: '' },
  ];
  for (const spelling of spellings) {
    const { loads } = await followRules(t, folder.path, spelling);
    t.equal(limitOf(loads, 'a'), 1, JSON.stringify(spelling));
  }
});

t.test('a missing directory, or a file, is an error that names it and the three settings', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('sub/file', '');
  await t.rejects(followRules(t, folder.path, { subdirectory: 'sub', appDirectory: 'missing' }), {
    message:
      `the rule directory ${folder.path}/sub/missing cannot be read (ENOENT): it is made of RUNTIME_ROOT (${folder.path}), ` +
      'RUNTIME_SUBDIRECTORY (sub) and RUNTIME_APPDIRECTORY (missing)',
  });
  await t.rejects(followRules(t, folder.path, { appDirectory: 'sub/file' }), {
    message:
      `the rule directory ${folder.path}/sub/file is not a directory: it is made of RUNTIME_ROOT (${folder.path}), ` +
      'RUNTIME_SUBDIRECTORY (empty) and RUNTIME_APPDIRECTORY (sub/file)',
  });
});

t.test('after a hundred quick edits the last content is active', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 0));
  const rules = await followRules(t, folder.path);
  for (let i = 1; i <= 100; i += 1) {
    folder.write('config/a.yaml', rulesText('a', i));
    await new Promise(setImmediate);
  }
  await rules.inForce('a', 100);
  t.ok(rules.loads.length < 100, 'edits that follow each other are one change');
});

t.test('a failing load handler does not prevent the next load', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rulesText('a', 1));
  const source = fileSource(folder.path);
  t.teardown(() => source.close());
  let handled = 0;
  const fail = (): void => {
    handled += 1;
    throw new Error('out of memory');
  };
  await t.rejects(source.start(fail), { message: 'out of memory' });
  folder.write('config/a.yaml', rulesText('a', 2));
  await awaitUntil(() => handled >= 2, { what: 'a second attempt' });
  t.equal(handled, 2);
});

t.test('a source that is closed during its start loads nothing', async (t) => {
  const folder = makeTextFolder(t);
  mkdirSync(join(folder.path, 'config'));
  const rules: unknown[] = [];
  const source = fileSource(folder.path);
  const starting = source.start((load) => rules.push(load));
  await source.close();
  await starting;
  t.strictSame(rules, []);
});

t.test('the event loop is not blocked while a large file loads', async (t) => {
  const folder = makeTextFolder(t);
  const keys = Array.from({ length: 20_000 }, (_, i) => `key-${i}`);
  folder.write('config/large.yaml', rulesText('large', 1, keys));
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const load = await loadRuleFiles({
    directory: join(folder.path, 'config'),
    labelRoot: folder.path,
    ignoreDotFiles: false,
    mergeDomains: false,
  });
  clearImmediate(next);
  t.match(load, { ok: true, rules: { ruleCount: 20_000 } });
  // 100 ms and more of work in slices of 5 ms.
  t.ok(turns >= 10, `${turns} turns`);
});
