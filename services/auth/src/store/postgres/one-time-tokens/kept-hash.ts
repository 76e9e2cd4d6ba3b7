import { createHash } from 'node:crypto';
import { pkcePrefix } from '../../../domain/pkce.ts';

const keptPrefix = 'sha256:';
/** Form of hashes that are kept as sent: by GoTrue, by earlier versions, and in a shared database. */
const sentForm = /^(?:pkce_)?[0-9a-f]{56}$/;

/**
 * What the database keeps of the hash of a one-time token, which is what links carry: a digest, so that who can read the database cannot
 * follow the links in it. The prefix of PKCE stays in front.
 */
export function keptHash(hash: string): string {
  const isPkce = hash.startsWith(pkcePrefix);
  const digest = createHash('sha256')
    .update(isPkce ? hash.slice(pkcePrefix.length) : hash)
    .digest('hex');
  return `${isPkce ? pkcePrefix : ''}${keptPrefix}${digest}`;
}

/**
 * The values under which a hash that somebody presents may be kept: its digest, or itself in a row of an older server. A digest itself
 * does not have the form of those: presenting it finds nothing.
 */
export function keptHashesOf(hash: string): readonly string[] {
  return isSentForm(hash) ? [keptHash(hash), hash] : [keptHash(hash)];
}

/** Can that be a hash of a server that keeps it as it was sent? */
export function isSentForm(hash: string): boolean {
  return sentForm.test(hash);
}
