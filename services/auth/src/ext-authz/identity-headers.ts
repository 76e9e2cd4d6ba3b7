import { attributeOutputs, type CallerIdentity, headerName } from '@tollgate/policies/decide/caller';
import type { AuthzDenied, HeaderChanges } from './result.ts';

/** Headers that carry the identity of the caller to upstreams, without those of the routes file. */
export const identityHeaderNames: readonly string[] = attributeOutputs.map(({ header }) => header);

/**
 * Names that upstreams may mistake for ours, or for those of another authentication proxy. CGI and
 * its successors do not distinguish `-` from `_`, and some of them no punctuation at all.
 */
const spoofableName = /^x[^a-z\d](?:auth|user)(?:[^a-z\d]|$)/;

/** Everything except visible ASCII, and the escape character itself. */
const notPlain = /[^!-$&-~]/gu;
const plain = /^[!-$&-~]*$/;

interface HeaderOptions {
  /** Attributes of the routes file. */
  readonly added?: readonly string[] | undefined;
  /** Headers with an API key, which upstreams must not see. */
  readonly credentials?: readonly string[] | undefined;
}

/** Sets the identity headers, and removes what the client sent under their names. */
export function identityHeaders(
  identity: CallerIdentity | undefined,
  incomingNames: readonly string[],
  options: HeaderOptions = {},
): HeaderChanges {
  return removeSpoofed(ownHeaders(identity, options), incomingNames);
}

/** A caller whose headers, and response without other changes, are created once. */
export class KnownCaller {
  readonly ok = true;
  readonly identity: CallerIdentity;
  /** The key that the token is bound to, of which each request must have a proof. */
  readonly thumbprint: string | undefined;
  readonly #credentials: readonly string[];
  #headers: CallerHeaders | undefined;
  #added: readonly string[] | undefined;

  /** @param credentials headers with an API key, which upstreams must not see */
  constructor(identity: CallerIdentity, credentials: readonly string[] = [], thumbprint?: string) {
    this.identity = identity;
    this.thumbprint = thumbprint;
    this.#credentials = credentials;
  }

  /** Denies a request of the caller, whose credentials must not reach upstreams either. */
  refuse(denial: AuthzDenied) {
    return { ok: false, denial, credentials: this.#credentials } as const;
  }

  headers(incomingNames: readonly string[], added: readonly string[]): HeaderChanges {
    if (this.#headers === undefined || this.#added !== added) {
      this.#headers = new CallerHeaders(ownHeaders(this.identity, { added, credentials: this.#credentials }));
      this.#added = added;
    }
    return removeSpoofed(this.#headers, incomingNames);
  }
}

/** The headers of a caller to whose request the client added none of their names. */
export class CallerHeaders implements HeaderChanges {
  readonly set: HeaderChanges['set'];
  readonly remove: HeaderChanges['remove'];
  #response: Uint8Array | undefined;

  constructor({ set, remove }: HeaderChanges) {
    this.set = set;
    this.remove = remove;
  }

  /** The encoded response, which depends on nothing but the caller. */
  response(encode: () => Uint8Array): Uint8Array {
    // A copy: the writer's buffer is larger.
    this.#response ??= Uint8Array.from(encode());
    return this.#response;
  }
}

function ownHeaders(
  identity: CallerIdentity | undefined,
  { added = [], credentials = [] }: HeaderOptions,
): HeaderChanges {
  const set: Record<string, string> = {};
  const remove: string[] = [...credentials];
  const setOrRemove = (header: string, value: string | boolean | undefined): void => {
    if (value === undefined || value === '') remove.push(header);
    else set[header] = typeof value === 'string' ? encode(value) : String(value);
  };
  for (const { header, read } of attributeOutputs) setOrRemove(header, identity && read(identity));
  for (const name of added) setOrRemove(headerName(name), identity?.claims[name]);
  return { set, remove };
}

/** Removes headers of the client that an upstream may mistake for identity headers. */
function removeSpoofed(own: HeaderChanges, incomingNames: readonly string[]): HeaderChanges {
  // A loop: most requests have none, and each check runs this.
  for (const name of incomingNames) if (spoofableName.test(name)) return removeAll(own, incomingNames);
  return own;
}

function removeAll({ set, remove }: HeaderChanges, incomingNames: readonly string[]): HeaderChanges {
  const spoofed = incomingNames.filter((name) => spoofableName.test(name) && set[name] === undefined);
  return { set, remove: [...new Set([...remove, ...spoofed])] };
}

/** Encodes a value so that it cannot split a header; `decodeURIComponent` restores it. */
function encode(value: string): string {
  return plain.test(value) ? value : value.toWellFormed().replace(notPlain, encodeURIComponent);
}
