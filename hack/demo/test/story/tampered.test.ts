import t from 'tap';
import { tampered } from '../../story/tampered.ts';

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

t.test('a tampered token has another role, and the signature that it had', async (t) => {
  const token = `${encode({ alg: 'HS256' })}.${encode({ sub: 'u1', role: 'authenticated' })}.signature`;
  t.equal(tampered(token), `${encode({ alg: 'HS256' })}.${encode({ sub: 'u1', role: 'service' })}.signature`);
});
