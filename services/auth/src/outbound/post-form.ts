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
  /** Time limit of the whole request. Default 10 s. */
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

/** An object; empty for anything else. */
export function toObject(value: unknown): Readonly<Record<string, unknown>> {
  // Parsed boundary: members are unknown.
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}

/** The objects of a list; empty for anything else. */
export function toObjects(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(toObject) : [];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
