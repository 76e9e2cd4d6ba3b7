/** A server that is up answers its own health page far sooner. */
const answerTimeoutMs = 1000;

/**
 * The body of a page.
 *
 * @throws Error when there is no answer within a second, or another status than 2xx.
 */
export async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(answerTimeoutMs) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text;
}
