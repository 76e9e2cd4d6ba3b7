import { randomBytes } from 'node:crypto';
import t from 'tap';
import { makeCounterToken, parseCounterToken } from '../../src/sessions/refresh-token.ts';

const key = Buffer.alloc(32, 7).toString('base64url');
const sessionId = '00112233-4455-6677-8899-aabbccddeeff';

t.test('token contains session and counter', (t) => {
  for (const counter of [0, 1, 127, 128, 300, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER]) {
    const token = makeCounterToken({ sessionId, counter }, key);
    t.match(token, /^[\w-]{51,61}$/);
    const read = parseCounterToken(token);
    t.match(read, { sessionId, counter });
    t.equal(read?.isSignedWith(key), true);
    t.equal(read?.isSignedWith(Buffer.alloc(32, 8).toString('base64url')), false);
  }
  t.end();
});

t.test('token consists of version, session, counter, signature and checksum', (t) => {
  const bytes = Buffer.from(makeCounterToken({ sessionId, counter: 300 }, key), 'base64url');
  t.equal(bytes.subarray(0, 19).toString('hex'), '0000112233445566778899aabbccddeeffac02');
  t.equal(bytes.length, 19 + 16 + 4);
  t.end();
});

t.test('token with a flipped bit is rejected', (t) => {
  const bytes = Buffer.from(makeCounterToken({ sessionId, counter: 1 }, key), 'base64url');
  for (const index of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] ?? 0) ^ 1;
    t.equal(parseCounterToken(changed.toString('base64url')), undefined, `byte ${index}`);
  }
  t.end();
});

t.test('other texts are rejected', (t) => {
  const token = makeCounterToken({ sessionId, counter: 1 }, key);
  for (const text of [
    '',
    'abcdefghijkl',
    `${token}A`,
    `${token}=`,
    ` ${token}`,
    token.slice(1),
    'A'.repeat(1000),
  ])
    t.equal(parseCounterToken(text), undefined, text.slice(0, 60));
  for (let i = 0; i < 1000; i++)
    t.equal(parseCounterToken(randomBytes(i % 64).toString('base64url')), undefined);
  t.end();
});
