import { createHmac } from 'node:crypto';

/** A token for the admin API of the auth server: no user, no expiry. */
export function serviceKey(jwtSecret: string): string {
  const text = [{ alg: 'HS256', typ: 'JWT' }, { role: 'service_role' }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${text}.${createHmac('sha256', jwtSecret).update(text).digest('base64url')}`;
}
