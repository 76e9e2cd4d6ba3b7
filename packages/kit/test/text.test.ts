import t from 'tap';
import { hostAndPort, maskPath, maskUrl } from '../src/text.ts';

t.test('an IPv6 address has brackets, other hosts do not', async (t) => {
  t.equal(hostAndPort('127.0.0.1', 80), '127.0.0.1:80');
  t.equal(hostAndPort('limiter.example.com', 8081), 'limiter.example.com:8081');
  t.equal(hostAndPort('::', 8081), '[::]:8081');
  t.equal(hostAndPort('[::1]', 0), '[::1]:0');
});

t.test('credentials in URLs are hidden anywhere in a text', (t) => {
  const vectors: readonly (readonly [string, string])[] = [
    ['redis://user:pass@host:6379?db=1', 'redis://***@host:6379?db=1'],
    ['redis://:pass@host', 'redis://***@host'],
    ['redis://host:6379', 'redis://host:6379'],
    ['host:6379', 'host:6379'],
    ['user:pass@host:6379', '***@host:6379'],
    ['redis://u:p@ss/w,rd@host', 'redis://***@host'],
    [
      'connect to rediss://u:p@h failed, then postgres://a:b@c/d',
      'connect to rediss://***@h failed, then postgres://***@c/d',
    ],
    ['HTTP://U:P@H', 'HTTP://***@H'],
    ['file:///srv/@scope/file.ts:3:1', 'file:///srv/@scope/file.ts:3:1'],
    ['someone@example.org', 'someone@example.org'],
    ['', ''],
  ];
  for (const [text, masked] of vectors) t.equal(maskUrl(text), masked, text);
  t.end();
});

t.test('of a URL whose path has credentials only the origin is shown', (t) => {
  const vectors: readonly (readonly [string, string])[] = [
    ['https://hooks.example.com/services/T0/token', 'https://hooks.example.com/***'],
    ['https://user:token@hooks.example.com:8443/in?key=token', 'https://hooks.example.com:8443/***'],
    ['https:/hooks.example.com/token', 'https://hooks.example.com/***'],
    ['https://hooks.example.com/', 'https://hooks.example.com'],
    ['pg-functions://postgres/auth/token', 'pg-functions://***'],
    ['/templates/invite.html?key=token', '/templates/invite.html?***'],
    ['//hooks.example.com/token', '***'],
    ['hooks.example.com/token', '***'],
    ['', ''],
  ];
  for (const [text, masked] of vectors) t.equal(maskPath(text), masked, text);
  t.end();
});

t.test('a hostile text is masked in linear time', (t) => {
  const texts = [
    'a://'.repeat(250_000),
    `@${'a://'.repeat(250_000)}`,
    'x'.repeat(1_000_000),
    `${':'.repeat(1_000_000)} @`,
  ];
  for (const text of texts) t.equal(maskUrl(text), text);
  t.end();
});
