import type { HeaderChanges } from './authz-decision.ts';
import type { CallerIdentity } from './caller-identity.ts';

/** Names of the headers that tell upstreams who calls. */
export const identityHeaderNames = [
  'x-auth-user-id',
  'x-auth-session-id',
  'x-auth-role',
  'x-auth-plan',
  'x-auth-aal',
  'x-auth-anonymous',
] as const;

type IdentityHeaderName = (typeof identityHeaderNames)[number];

/** Names that upstreams take for ours, or for those of another authentication. CGI and its heirs make `-` and `_` the same. */
const identityName = /^x[-_](?:auth|user)(?:[-_]|$)/;

/** All but visible ASCII, and the character that marks what is encoded. */
const notPlain = /[^!-$&-~]/gu;

/** Headers for the upstream. Nothing that a client sent under the name of one gets there, whether or not there is an identity. */
export function identityHeaders(
  identity: CallerIdentity | undefined,
  incomingNames: readonly string[],
): HeaderChanges {
  const set = identity === undefined ? {} : headersOf(identity);
  const suspects = incomingNames.filter((name) => identityName.test(name));
  const remove = new Set<string>([...identityHeaderNames, ...suspects]);
  for (const name of Object.keys(set)) remove.delete(name);
  return { set, remove: [...remove] };
}

function headersOf(identity: CallerIdentity): Readonly<Record<string, string>> {
  const values: Readonly<Record<IdentityHeaderName, string | undefined>> = {
    'x-auth-user-id': identity.userId,
    'x-auth-session-id': identity.sessionId,
    'x-auth-role': identity.role,
    'x-auth-plan': identity.plan,
    'x-auth-aal': identity.aal,
    'x-auth-anonymous': String(identity.isAnonymous),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value = '']) => (value === '' ? [] : [[name, plain(value)]])),
  );
}

/** A value that splits no header and is read the same everywhere; `decodeURIComponent` gives the text back. */
function plain(value: string): string {
  return value.toWellFormed().replace(notPlain, encodeURIComponent);
}
