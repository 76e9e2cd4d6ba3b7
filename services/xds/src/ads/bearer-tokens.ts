import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';

/** More than a rotation needs; each costs a comparison per call. */
const maxTokens = 100;

/** @see RFC 6750 §2.1 https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const bearerToken = /^[A-Za-z0-9\-._~+/]+=*$/;
const bearerHeader = /^bearer +(\S+)$/i;

/** The accepted tokens. Several are valid at the same time, for rotation. */
export class BearerTokens {
  readonly #key = randomBytes(32);
  #digests: readonly Buffer[];

  constructor(tokens: readonly string[]) {
    this.#digests = tokens.map((token) => this.#digest(token));
  }

  /** Open streams are not affected. */
  replace(tokens: readonly string[]): void {
    this.#digests = tokens.map((token) => this.#digest(token));
  }

  /** Why a call is refused; undefined when it is accepted. Never contains the token. */
  check(authorization: string | undefined): string | undefined {
    const token = bearerHeader.exec(authorization ?? '')?.[1];
    if (token === undefined) return 'metadata "authorization: Bearer <token>" is required';
    const presented = this.#digest(token);
    const matches = this.#digests.filter((digest) => timingSafeEqual(digest, presented));
    return matches.length > 0 ? undefined : 'the bearer token is not accepted';
  }

  /** Digests have the same length, so that the comparison takes constant time. */
  #digest(token: string): Buffer {
    return createHmac('sha256', this.#key).update(token).digest();
  }
}

/**
 * Reads the tokens of a file, one per line, and follows its changes. An invalid new file is logged,
 * and the last valid tokens stay. Rejects when the first file is invalid.
 */
export async function watchBearerTokens(
  path: string,
  options: {
    readonly logger: Logger;
    /** Called after each reload, and after the first read when it succeeds. */
    readonly onAttempt: (succeeded: boolean) => void;
  },
): Promise<{ readonly tokens: BearerTokens; close(): void }> {
  const { logger, onAttempt } = options;
  const tokens = new BearerTokens([]);
  const reload = async (): Promise<void> => {
    try {
      tokens.replace(await readTokens(path));
      onAttempt(true);
      logger.info({ path }, 'token file reloaded');
    } catch (err) {
      onAttempt(false);
      logger.error({ path, err }, 'invalid token file, keeping the last valid tokens');
    }
  };
  // The watch comes first, so that a change during the first read is not missed.
  const watch = await watchFiles({ paths: [path], onChange: reload, logger });
  try {
    tokens.replace(await readTokens(path));
  } catch (error) {
    watch.close();
    throw error;
  }
  onAttempt(true);
  return { tokens, close: () => watch.close() };
}

async function readTokens(path: string): Promise<string[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
  const invalid = lines.findIndex((line) => line !== '' && !bearerToken.test(line));
  if (invalid >= 0)
    throw new Error(`${path}: line ${invalid + 1} is not a bearer token (letters, digits and -._~+/=)`);
  const tokens = lines.filter((line) => line !== '');
  if (tokens.length === 0) throw new Error(`${path}: contains no token`);
  if (tokens.length > maxTokens) throw new Error(`${path}: contains more than ${maxTokens} tokens`);
  return tokens;
}
