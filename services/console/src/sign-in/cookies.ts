/** Names and attributes of the two cookies. */
export class Cookies {
  readonly #isSecure: boolean;

  constructor(externalUrl: string) {
    this.#isSecure = externalUrl.startsWith('https:');
  }

  /** The session. */
  get session(): string {
    return this.#name('tollgate-console');
  }

  /** The browser of a sign-in that has not completed. */
  get browser(): string {
    return this.#name('tollgate-console-sign-in');
  }

  /** `__Host-`: no other host and no page without TLS can set it. @see RFC 6265bis §4.1.3.2 */
  #name(name: string): string {
    return this.#isSecure ? `__Host-${name}` : name;
  }

  /** Lax: the callback is a navigation from another site. */
  set(name: string, value: string): string {
    return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`;
  }

  clear(name: string): string {
    return `${this.set(name, '')}; Max-Age=0`;
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
