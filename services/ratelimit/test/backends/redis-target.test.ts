import t from 'tap';
import { describeRedisTarget, parseRedisTarget } from '../../src/backends/redis/redis-target.ts';

const node = (host: string, port: number, more: object = {}) => ({ kind: 'tcp', host, port, ...more });

t.test('sentinels come after the name of the master', (t) => {
  t.strictSame(parseRedisTarget('sentinel', 'mymaster,10.0.0.1:26379, [::1]:26380', 'unix'), {
    ok: true,
    target: {
      kind: 'sentinel',
      master: 'mymaster',
      sentinels: [node('10.0.0.1', 26379), node('::1', 26380)],
    },
  });
  t.end();
});

t.test('a cluster is known by some of its nodes', (t) => {
  t.strictSame(parseRedisTarget('cluster', 'a:7000,redis://:secret@b:7001', 'unix'), {
    ok: true,
    target: {
      kind: 'cluster',
      nodes: [node('a', 7000), node('b', 7001, { credentials: { password: 'secret' } })],
    },
  });
  t.end();
});

t.test('what names nothing is refused with the form that it should have', (t) => {
  for (const url of [
    '',
    'mymaster',
    'host:26379',
    'host:1,host:2',
    ',host:1',
    'mymaster,',
    'mymaster,host',
    'm,/socket',
    'm,redis://:secret@host:1',
    'm,rediss://host:1',
  ]) {
    const result = parseRedisTarget('sentinel', url, 'tcp');
    t.match(result, { ok: false, expected: /name of the master/ }, url);
  }
  for (const url of ['', 'host', 'a:1,', 'a:1,b', 'a:1,/socket', 'a:0', 'a:1 b:2', 'a:1,redis://b:1?db=2']) {
    t.match(parseRedisTarget('cluster', url, 'tcp'), { ok: false, expected: /nodes of the cluster/ }, url);
  }
  t.end();
});

t.test('a list without the kind of deployment that has one is refused, with what to set', (t) => {
  for (const url of ['mymaster,10.0.0.1:26379', 'a:7000,b:7001', 'redis://a:7000,b:7001', 'rediss://a,b/0']) {
    t.match(parseRedisTarget('single', url, 'tcp'), { ok: false, expected: /sentinel or cluster/ }, url);
  }
  for (const url of ['redis://u:one,two@a:1', '/run/a,b.sock', 'unix:///run/a,b.sock']) {
    t.match(parseRedisTarget('single', url, 'tcp'), { ok: true }, url);
  }
  t.end();
});

t.test('it is logged without credentials', (t) => {
  const shown = (type: 'single' | 'sentinel' | 'cluster', url: string) => {
    const result = parseRedisTarget(type, url, 'tcp');
    return result.ok ? describeRedisTarget(result.target) : undefined;
  };
  t.equal(shown('single', 'redis://u:secret@a:1?db=2'), 'a:1');
  t.equal(shown('sentinel', 'mymaster,a:1,b:2'), 'mymaster,a:1,b:2');
  t.equal(shown('cluster', 'redis://u:secret@a:1,b:2'), 'a:1,b:2');
  t.end();
});
