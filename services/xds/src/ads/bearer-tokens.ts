import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';

/** Says why a call with this `authorization` may not be made, or undefined when it may. Never names the token. */
export type TokenGuard = (authorization: string | undefined) => string | undefined;

/** Tokens that follow their file. */
export interface WatchedTokens {
  readonly guard: TokenGuard;
  close(): void;
}

/** What following them takes. */
export interface WatchTokensDeps {
  readonly logger: Logger;
  /** Told of every attempt to read the file, the first one included if it succeeds. */
  readonly onAttempt: (succeeded: boolean) => void;
}

/** More than a rotation needs; each costs a comparison with each call. */
const maxTokens = 100;

/** @see RFC 6750 §2.1 https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const bearerToken = /^[A-Za-z0-9\-._~+/]+=*$/;
const bearerHeader = /^bearer +(\S+)$/i;

/**
 * Reads the tokens that a file holds, one a line, and follows its changes: several lines are several valid tokens, as a
 * rotation needs them. A changed file that cannot be used is logged, and the last good tokens stay. Who is connected stays
 * connected. Rejects when the first file cannot be used.
 */
export async function watchBearerTokens(
  path: string,
  { logger, onAttempt }: WatchTokensDeps,
): Promise<WatchedTokens> {
  let guard: TokenGuard | undefined;
  const reload = async (): Promise<void> => {
    try {
      guard = createTokenGuard(await readTokens(path));
      onAttempt(true);
      logger.info({ path }, 'token file reloaded');
    } catch (err) {
      onAttempt(false);
      logger.error({ path, err }, 'new token file not used, the last good tokens stay');
    }
  };
  // The watch first: a file that changes while it is read is read again.
  const watch = await watchFiles({ paths: [path], onChange: reload, logger });
  let first: TokenGuard;
  try {
    first = createTokenGuard(await readTokens(path));
  } catch (error) {
    watch.close();
    throw error;
  }
  onAttempt(true);
  return { guard: (authorization) => (guard ?? first)(authorization), close: () => watch.close() };
}

/** Makes a guard that lets in any of these tokens, sent as `authorization: Bearer <token>`. */
export function createTokenGuard(tokens: readonly string[]): TokenGuard {
  const key = randomBytes(32);
  // Digests are of one length, and tell nothing of how much of a guess was right.
  const digest = (token: string): Buffer => createHmac('sha256', key).update(token).digest();
  const accepted = tokens.map(digest);
  return (authorization) => {
    const token = bearerHeader.exec(authorization ?? '')?.[1];
    if (token === undefined) return 'metadata "authorization: Bearer <token>" is required';
    const presented = digest(token);
    const matches = accepted.filter((one) => timingSafeEqual(one, presented));
    return matches.length > 0 ? undefined : 'the bearer token is not one of those accepted';
  };
}

async function readTokens(path: string): Promise<string[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
  const bad = lines.findIndex((line) => line !== '' && !bearerToken.test(line));
  if (bad >= 0)
    throw new Error(`${path}: line ${bad + 1} is not a bearer token (letters, digits and -._~+/=)`);
  const tokens = lines.filter((line) => line !== '');
  if (tokens.length === 0) throw new Error(`${path}: holds no token`);
  if (tokens.length > maxTokens) throw new Error(`${path}: holds more than ${maxTokens} tokens`);
  return tokens;
}
