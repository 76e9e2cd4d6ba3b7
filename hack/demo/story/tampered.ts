/** A token that claims to be of another role, with the signature that it had. */
export function tampered(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const changed = { ...(typeof claims === 'object' ? claims : {}), role: 'service' };
  return [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.');
}
