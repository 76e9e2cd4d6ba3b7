/** Sends as many requests of a tenant, one after the other, and answers what became of each. */
export function statuses(url: string, tenant: string, times: number): Promise<number[]> {
  return statusesWith({ url, headers: { 'x-tenant': tenant } }, times);
}

/** Sends as many requests with a token, or without one, one after the other, and answers what became of each. */
export function statusesOf(url: string, accessToken: string | undefined, times: number): Promise<number[]> {
  const headers: Record<string, string> =
    accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` };
  return statusesWith({ url, headers }, times);
}

/** A service that hangs must not hold a test up for ever. */
const answerTimeoutMs = 20_000;

async function statusesWith(
  { url, headers }: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
  times: number,
): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(answerTimeoutMs) });
    await answer.arrayBuffer();
    seen.push(answer.status);
  }
  return seen;
}
