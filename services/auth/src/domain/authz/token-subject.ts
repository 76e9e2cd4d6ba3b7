import { isUuid } from '../uuid.ts';

/** Claims of a token whose signature and times are good. */
export type TokenClaims = Readonly<Record<string, unknown>>;

/** Whose token it is. */
export interface TokenSubject {
  /** In lower case. Absent for a token of a program, which names no user. */
  readonly userId: string | undefined;
  /** In lower case. Absent for a token that names no session. */
  readonly sessionId: string | undefined;
}

/** A subject, or why there is none that can be looked up. */
export type ReadSubject =
  | { readonly ok: true; readonly subject: TokenSubject }
  | { readonly ok: false; readonly reason: string };

/** Reads `sub` and `session_id`; an empty one is none, as in tokens of administrators. */
export function readTokenSubject({ sub, session_id: session }: TokenClaims): ReadSubject {
  const userId = readUuid(sub);
  const sessionId = readUuid(session);
  if (userId === null) return refuse('sub claim must be a UUID');
  if (sessionId === null) return refuse('session_id claim must be a UUID');
  if (sessionId !== undefined && userId === undefined) return refuse('missing sub claim');
  return { ok: true, subject: { userId, sessionId } };
}

/** Null for what is there and is no UUID. */
function readUuid(claim: unknown): string | undefined | null {
  if (claim === undefined || claim === null || claim === '') return undefined;
  return typeof claim === 'string' && isUuid(claim) ? claim.toLowerCase() : null;
}

function refuse(reason: string): ReadSubject {
  return { ok: false, reason };
}
