import type { Millis } from '@tollgate/kit/time';

/** Names and attributes of cookies. */
export class Cookies {
  readonly #isSecure: boolean;

  constructor(externalUrl: string) {
    this.#isSecure = externalUrl.startsWith('https:');
  }

  /** The session. */
  get session(): string {
    return this.#name('tollgate-console');
  }

  /** A sign-in that has not completed. Tabs of a browser may sign in at the same time. */
  signIn(state: string): string {
    return this.#name(`tollgate-console-sign-in-${state.replaceAll(/[^\w-]/g, '').slice(0, 16)}`);
  }

  /** `__Host-`: no other host and no page without TLS can set it. @see RFC 6265bis §4.1.3.2 */
  #name(name: string): string {
    return this.#isSecure ? `__Host-${name}` : name;
  }

  /** Lax: the callback is a navigation from another site. Default: until the browser ends. */
  set(name: string, value: string, maxAge?: Millis): string {
    const attributes = `Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`;
    return `${name}=${value}; ${attributes}${maxAge === undefined ? '' : `; Max-Age=${Math.floor(maxAge / 1000)}`}`;
  }

  clear(name: string): string {
    return this.set(name, '', 0);
  }
}

/** The value of a cookie of the header `Cookie`. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}
