import { OAuthClientError, type OAuthError, ParseError } from '../errors.ts';
import type { KeyCase } from '../key-case.ts';
import { isObject } from '../objects.ts';
import { convertKeys, type Parse, type Parsers, parseBody } from './body.ts';
import type { ParsedFactory } from './options.ts';

/**
 * The validating part of a Standard Schema, which zod, valibot and arktype implement. @see
 * https://standardschema.dev
 */
export type StandardSchema<Output> = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
};

/** The result of a validation. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** An issue of a validation. */
export type SchemaIssue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

/**
 * Validates a value with a schema.
 * @throws {ParseError} if it does not match; the message names the paths.
 */
async function parseAs<Output>(value: unknown, schema: StandardSchema<Output>): Promise<Output> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  const places = result.issues.map(({ path = [], message }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
    return `${keys.join('.')}: ${message}`;
  });
  throw new ParseError(`the response does not match the schema: ${places.join('; ')}`, {
    cause: result.issues,
  });
}

/** A response as it was received. */
export type ReceivedResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  /** The URL of the response, after redirects. */
  readonly url: string;
  readonly redirected: boolean;
};

/** How a response is parsed. */
export type ReadOptions = {
  readonly parse?: Parse | undefined;
  readonly keyCase?: KeyCase | undefined;
  readonly parsers?: Parsers | undefined;
  readonly parsedFactory?: ParsedFactory | undefined;
  /** Keeps the fields of `parsed`, which are secrets, from being printed. */
  readonly conceal?: ((parsed: object) => void) | undefined;
  /** Set once the response is known to be a failure. */
  readonly failure?: Failure;
};

type Failure = { readonly error?: OAuthError };

/** The values that `parsedFactory` was called with, by their response. */
const beforeFactory = new WeakMap<object, object>();

/** The object that `parsedFactory` was called with; undefined unless `parsed` has called it. */
export function parsedBeforeFactory(response: object): object | undefined {
  return beforeFactory.get(response);
}

/**
 * A response whose body has been read. `parsed` is computed at first use. Inspection and JSON show
 * no secrets; `body`, `headers` and `parsed` are not masked.
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

  /** The body; `''` if there is none. */
  get body(): string {
    return this.#received.body;
  }

  /** The URL of the response, after redirects. */
  get url(): string {
    return this.#received.url;
  }

  /** Whether a redirect was followed. */
  get redirected(): boolean {
    return this.#received.redirected;
  }

  /** The content type without parameters, in lower case; `''` if there is none. */
  get contentType(): string {
    const header = this.headers.get('content-type') ?? '';
    const semicolonAt = header.indexOf(';');
    return (semicolonAt < 0 ? header : header.slice(0, semicolonAt)).trim().toLowerCase();
  }

  /** The error of a status of 400 and above; thrown unless `throwOnError` is false. */
  get error(): OAuthError | undefined {
    return this.#options.failure?.error;
  }

  /**
   * The parsed body: an object without prototype (from a form or a JSON object), an array, or the
   * text if there is no parser.
   * @throws {ParseError} if the body does not match its content type, or two keys are the same in
   * snake_case.
   */
  get parsed(): T {
    this.#parsed ??= { value: this.#parse() };
    // The type is not checked: use `parsedAs` for that.
    return this.#parsed.value as T;
  }

  /**
   * The parsed body, validated with a schema of any library that implements Standard Schema.
   * @throws {ParseError} if it does not match; the message names the paths.
   */
  async parsedAs<Output>(schema: StandardSchema<Output>): Promise<Output> {
    return await parseAs(this.parsed, schema);
  }

  /** Leaves out the body and the URL's query, which may hold secrets. */
  toJSON(): Record<string, unknown> {
    const { status, contentType, redirected, body } = this;
    return { status, url: this.url.split(/[?#]/, 1)[0], contentType, redirected, bodyLength: body.length };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return { ApiResponse: this.toJSON() };
  }

  #parse(): unknown {
    const { parse = 'automatic', parsers = {}, keyCase = 'snake', parsedFactory, conceal } = this.#options;
    const { status, headers, body } = this.#received;
    const raw = parseBody(body, { status, headers, contentType: this.contentType }, { parse, parsers });
    const converted = convertKeys(raw, keyCase);
    if (isObject(converted)) conceal?.(converted);
    if (parsedFactory === undefined || !isObject(converted)) return converted;
    beforeFactory.set(this, converted);
    return callFactory(parsedFactory, converted);
  }
}

/** @throws {ParseError} if the factory throws. */
function callFactory(factory: ParsedFactory, parsed: Parameters<ParsedFactory>[0]): unknown {
  try {
    return factory(parsed);
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    throw new ParseError('`parsedFactory` failed; see `cause`', { cause });
  }
}
