import { readFile } from 'node:fs/promises';
import { epochSeconds } from '../clock.ts';
import { TokenUnavailableError } from '../errors.ts';
import { decodeJwt } from '../jwt/decode.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';

/** How a token file is read. */
export interface TokenFileOptions {
  readonly path: string;
  /** Epoch seconds. Default from `Date`. */
  readonly now?: () => number;
}

const optionNames: OptionNames<TokenFileOptions> = { path: 1, now: 1 };

/** @throws {ConfigurationError} naming every option that is not known. */
export function assertTokenFileOptions(options: TokenFileOptions): void {
  assertKnownOptions('a token file', options, optionNames);
}

/** About the API server's limit for a request. */
const maxTokenChars = 262_144;

/**
 * Reads a JWT that another process rotates in a file (the kubelet, a SPIFFE helper). Not cached,
 * because the file is replaced behind a symbolic link. Only `exp` is checked.
 *
 * @throws TokenUnavailableError without the token, if the file cannot be read, is empty or too
 * long, or its token has expired.
 */
export async function readTokenFile(options: TokenFileOptions): Promise<string> {
  assertTokenFileOptions(options);
  const { path, now = epochSeconds } = options;
  const token = (await readText(path)).trim();
  if (token === '') throw new TokenUnavailableError(`the token file ${path} is empty`);
  if (token.length > maxTokenChars)
    throw new TokenUnavailableError(`the token file ${path} is too long for a token`);
  const expiresAt = decodeJwt(token)?.claims.exp;
  if (typeof expiresAt === 'number' && expiresAt <= now()) {
    throw new TokenUnavailableError(
      `the token in ${path} expired at ${new Date(expiresAt * 1000).toISOString()}: check that it is still being rotated`,
      { retryable: true },
    );
  }
  return token;
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new TokenUnavailableError(
      `the token file ${path} cannot be read: is the projected volume mounted?`,
      { cause, retryable: true },
    );
  }
}
