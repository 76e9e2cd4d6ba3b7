import { readBody } from '@tollgate/kit/body';

const defaultTimeoutMs = 10_000;
/** Responses have a few hundred bytes. */
const maxResponseBytes = 64 * 1024;

export interface FormResponse {
  readonly status: number;
  /** Unvalidated JSON; undefined for another content. */
  readonly body: unknown;
}

interface PostFormOptions {
  readonly form: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the whole request. Default 10 s. */
  readonly timeoutMs?: number;
}

/**
 * Posts a form to a vendor whose URL is configured. Redirects are errors, as the form contains
 * secrets.
 */
export async function postForm(
  url: string,
  { form, headers, timeoutMs = defaultTimeoutMs }: PostFormOptions,
): Promise<FormResponse> {
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'error',
    headers: { accept: 'application/json', ...headers },
    body: new URLSearchParams(form),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const tooLarge = () => new Error(`the response is longer than ${maxResponseBytes} bytes`);
  const body = await readBody(response.body, maxResponseBytes, tooLarge);
  return { status: response.status, body: parse(body.toString()) };
}

/** The members of a JSON object, with unknown values; none for another value. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  // Parsed boundary: all members are unknown.
  return (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
}

/** The members of the first object of a list; none without one. */
export function firstOf(value: unknown): Readonly<Record<string, unknown>> {
  return membersOf(Array.isArray(value) ? value[0] : undefined);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
