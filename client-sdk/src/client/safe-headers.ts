import { ConfigurationError } from '../errors/configuration-error.ts';
import type { HeadersInput } from './request-options.ts';

/**
 * `new Headers`, but what cannot be a header is an error that does not quote it: the runtime's own error shows the whole value, which
 * may be a token.
 * @throws {ConfigurationError}
 */
export function safeHeaders(input: HeadersInput | undefined): Headers {
  try {
    return new Headers(input);
  } catch {
    throw new ConfigurationError(
      'a header has a name or value that cannot be sent; is there a line break in it?',
    );
  }
}

/** Sets a header. @throws {ConfigurationError} naming the header, when its value cannot be sent. */
export function setHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    throw new ConfigurationError(
      `the header \`${name}\` cannot be sent; is there a line break in its value?`,
    );
  }
}
