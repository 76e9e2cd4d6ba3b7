import t from 'tap';
import { hostAndPort } from '../src/text.ts';

t.test('an IPv6 address gets brackets, everything else stays as it is', async (t) => {
  t.equal(hostAndPort('127.0.0.1', 80), '127.0.0.1:80');
  t.equal(hostAndPort('limiter.example.com', 8081), 'limiter.example.com:8081');
  t.equal(hostAndPort('::', 8081), '[::]:8081');
  t.equal(hostAndPort('[::1]', 0), '[::1]:0');
});
