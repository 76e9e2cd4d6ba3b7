/** A gateway that takes longer has lost the message, or its caller. */
const timeoutMs = 10_000;
/** What gateways answer has a few hundred bytes. */
const maxAnswerBytes = 64 * 1024;

/** What a gateway answered. */
export interface FormAnswer {
  readonly status: number;
  /** JSON, as nobody has looked at it; undefined when it was none. */
  readonly body: unknown;
}

/** Posts a form to the API of a vendor and reads its answer. Follows no redirects: the form carries secrets. */
export async function postForm(
  url: string,
  options: {
    readonly form: Readonly<Record<string, string>>;
    readonly headers: Readonly<Record<string, string>>;
  },
): Promise<FormAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'error',
    headers: { accept: 'application/json', ...options.headers },
    body: new URLSearchParams(options.form),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: response.status, body: parse(await readText(response)) };
}

async function readText(response: Response): Promise<string> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new Error(`the answer is longer than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
