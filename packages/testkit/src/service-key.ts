import { createHmac } from 'node:crypto';

/** A token that the admin API of the auth server takes, for ever and of nobody: made by hand, as its secret's owners do. */
export function serviceKey(jwtSecret: string): string {
  const text = [{ alg: 'HS256', typ: 'JWT' }, { role: 'service_role' }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${text}.${createHmac('sha256', jwtSecret).update(text).digest('base64url')}`;
}
