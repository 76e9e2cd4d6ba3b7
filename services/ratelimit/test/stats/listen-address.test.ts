import t from 'tap';
import { parseListenAddress } from '../../src/stats/listen-address.ts';

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
