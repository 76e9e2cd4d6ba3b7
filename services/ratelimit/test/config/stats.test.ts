import t from 'tap';
import { chooseSink, parseListenAddress } from '../../src/config/stats.ts';

const none = { usePushStats: false, useTagStatsd: false, usePullMetrics: false, disableStats: false };

t.test('one setting selects one sink, without any it is standard output', async (t) => {
  t.strictSame(chooseSink({ ...none, usePushStats: true }), { ok: true, sink: 'statsd' });
  t.strictSame(chooseSink({ ...none, usePullMetrics: true }), { ok: true, sink: 'pull' });
  t.strictSame(chooseSink(none), { ok: true, sink: 'log' });
});

t.test('two sinks are rejected with the setting to turn off', async (t) => {
  t.strictSame(chooseSink({ ...none, usePushStats: true, usePullMetrics: true }), {
    ok: false,
    turnOff: 'usePushStats',
    because: 'usePullMetrics',
  });
  t.strictSame(chooseSink({ ...none, useTagStatsd: true, usePullMetrics: true }), {
    ok: false,
    turnOff: 'useTagStatsd',
    because: 'usePullMetrics',
  });
});

t.test('tagged push is a sink', async (t) => {
  t.strictSame(chooseSink({ ...none, useTagStatsd: true }), { ok: true, sink: 'tagStatsd' });
});

t.test('DISABLE_STATS takes precedence, also over conflicts', async (t) => {
  t.strictSame(
    chooseSink({ usePushStats: true, useTagStatsd: true, usePullMetrics: true, disableStats: true }),
    {
      ok: true,
      sink: undefined,
    },
  );
});

t.test('a port alone listens on all interfaces', async (t) => {
  t.strictSame(parseListenAddress(':9090'), { host: undefined, port: 9090 });
});

t.test('host and port are parsed, with IPv6 in brackets', async (t) => {
  t.strictSame(parseListenAddress('127.0.0.1:0'), { host: '127.0.0.1', port: 0 });
  t.strictSame(parseListenAddress('metrics.local:80'), { host: 'metrics.local', port: 80 });
  t.strictSame(parseListenAddress('[::1]:9090'), { host: '::1', port: 9090 });
});

t.test('other texts are invalid', async (t) => {
  for (const text of ['', '9090', 'host', 'host:', ':65536', '::1:9090', 'http://x:1']) {
    t.equal(parseListenAddress(text), undefined, text);
  }
});
