import t from 'tap';
import { chooseSink, parseListenAddress } from '../../src/config/stats.ts';

const none = { pushStats: false, taggedPush: false, pull: false, disabled: false };

t.test('one switch chooses one sink, none of them standard output', async (t) => {
  t.strictSame(chooseSink({ ...none, pushStats: true }), { ok: true, sink: 'statsd' });
  t.strictSame(chooseSink({ ...none, pull: true }), { ok: true, sink: 'pull' });
  t.strictSame(chooseSink(none), { ok: true, sink: 'log' });
});

t.test('two switches are refused; push, which is on unless set, is the one to turn off', async (t) => {
  t.strictSame(chooseSink({ ...none, pushStats: true, pull: true }), {
    ok: false,
    turnOff: 'pushStats',
    because: 'pull',
  });
  t.strictSame(chooseSink({ ...none, taggedPush: true, pull: true }), {
    ok: false,
    turnOff: 'taggedPush',
    because: 'pull',
  });
});

t.test('tagged push is refused by itself, because nothing serves it', async (t) => {
  t.strictSame(chooseSink({ ...none, taggedPush: true }), {
    ok: false,
    turnOff: 'taggedPush',
    because: 'not served',
  });
});

t.test('disabling wins over everything, conflicts included', async (t) => {
  t.strictSame(chooseSink({ pushStats: true, taggedPush: true, pull: true, disabled: true }), {
    ok: true,
    sink: undefined,
  });
});

t.test('a port alone listens on all interfaces', async (t) => {
  t.strictSame(parseListenAddress(':9090'), { host: undefined, port: 9090 });
});

t.test('host and port are told apart, IPv6 in brackets', async (t) => {
  t.strictSame(parseListenAddress('127.0.0.1:0'), { host: '127.0.0.1', port: 0 });
  t.strictSame(parseListenAddress('metrics.local:80'), { host: 'metrics.local', port: 80 });
  t.strictSame(parseListenAddress('[::1]:9090'), { host: '::1', port: 9090 });
});

t.test('anything else is no address', async (t) => {
  for (const text of ['', '9090', 'host', 'host:', ':65536', '::1:9090', 'http://x:1']) {
    t.equal(parseListenAddress(text), undefined, text);
  }
});
