import { type OAuthError, ParseError } from '../errors.ts';
import type { WarningEvent } from '../hooks.ts';
import type { KeyCase } from '../keys.ts';
import { isObject } from '../objects.ts';
import { convertKeys, type Parse, type Parsers, parseBody } from './body.ts';
import type { ParsedFactory } from './options.ts';

/** The part of a Standard Schema that validates; zod, valibot and arktype schemas are ones. @see https://standardschema.dev */
export type StandardSchema<Output> = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
};

/** What a validation gives. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One thing that does not fit. */
export type SchemaIssue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

/**
 * Checks a value by a schema.
 * @throws {ParseError} when it does not fit; the message names the places.
 */
async function parseAs<Output>(value: unknown, schema: StandardSchema<Output>): Promise<Output> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  const places = result.issues.map(({ path = [], message }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
    return `${keys.join('.')}: ${message}`;
  });
  throw new ParseError(`the response does not fit the schema: ${places.join('; ')}`, {
    cause: result.issues,
  });
}

/** What came over the wire, its body read. */
export type ReceivedResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  /** The URL that answered, after redirects. */
  readonly url: string;
  readonly redirected: boolean;
};

/** How a response is read. */
export type ReadOptions = {
  readonly parse?: Parse | undefined;
  readonly keyCase?: KeyCase | undefined;
  readonly parsers?: Parsers | undefined;
  readonly parsedFactory?: ParsedFactory | undefined;
  readonly onWarning?: ((event: WarningEvent) => void) | undefined;
  /** Filled in once the response is known to be a failure. */
  readonly failure?: Failure;
};

/** The failure that a response is. */
type Failure = { readonly error?: OAuthError };

/**
 * A response whose body has been read. `parsed` is worked out at its first use and kept. Inspection and JSON show no secrets;
 * `body`, `headers` and `parsed` are as they came.
 */
export class ApiResponse<T = unknown> {
  readonly #received: ReceivedResponse;
  readonly #options: ReadOptions;
  #parsed: { readonly value: unknown } | undefined;

  constructor(received: ReceivedResponse, options: ReadOptions = {}) {
    this.#received = received;
    this.#options = options;
  }

  /** The HTTP status. */
  get status(): number {
    return this.#received.status;
  }

  get headers(): Headers {
    return this.#received.headers;
  }

  /** The body as it came; `''` when there was none. */
  get body(): string {
    return this.#received.body;
  }

  /** The URL that answered, after redirects. */
  get url(): string {
    return this.#received.url;
  }

  /** Whether a redirect was followed. */
  get redirected(): boolean {
    return this.#received.redirected;
  }

  /** The content type without parameters, in lower case; `''` when the response names none. */
  get contentType(): string {
    const header = this.headers.get('content-type') ?? '';
    const semicolonAt = header.indexOf(';');
    return (semicolonAt < 0 ? header : header.slice(0, semicolonAt)).trim().toLowerCase();
  }

  /** The failure that a status of 400 and above is; the error thrown, unless `throwOnError` is false. */
  get error(): OAuthError | undefined {
    return this.#options.failure?.error;
  }

  /**
   * The body parsed: an object without prototype (from a form, or a JSON object), an array, or the body's text where nothing parses it.
   * @throws {ParseError} when the body is not what its content type says.
   */
  get parsed(): T {
    this.#parsed ??= { value: this.#parse() };
    // The caller names the shape it expects; `parsedAs` is the way to have it checked.
    return this.#parsed.value as T;
  }

  /**
   * The body parsed and checked by a schema of any library that speaks Standard Schema.
   * @throws {ParseError} when it does not fit; the message names the places.
   */
  async parsedAs<Output>(schema: StandardSchema<Output>): Promise<Output> {
    return await parseAs(this.parsed, schema);
  }

  /** What is safe to print: nothing of the body or the URL's query, where secrets may be. */
  toJSON(): Record<string, unknown> {
    const { status, contentType, redirected, body } = this;
    return { status, url: this.url.split(/[?#]/, 1)[0], contentType, redirected, bodyLength: body.length };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return { ApiResponse: this.toJSON() };
  }

  #parse(): unknown {
    const { parse = 'automatic', parsers = {}, keyCase = 'snake', parsedFactory, onWarning } = this.#options;
    const { status, headers, body } = this.#received;
    const raw = parseBody(body, { status, headers, contentType: this.contentType }, { parse, parsers });
    const onCollision =
      onWarning &&
      ((key: string) =>
        onWarning({
          code: 'key_collision',
          message: `several keys of the response became \`${key}\`; the last one is kept`,
        }));
    const converted = convertKeys(raw, { keyCase, onCollision });
    return parsedFactory !== undefined && isObject(converted) ? parsedFactory(converted) : converted;
  }
}

/** Responses to requests that carried a DPoP proof, as `fetch` returned them and as they were read. */
const proven = new WeakSet<object>();

/** Records that a response answers a request with a DPoP proof. */
export function markProven(response: object): void {
  proven.add(response);
}

/** Whether a response answers a request with a DPoP proof, so that its token must be bound to the key. */
export function isProven(response: object): boolean {
  return proven.has(response);
}
