/** Sends as many requests of a tenant, one after the other, and answers what became of each. */
export async function statuses(url: string, tenant: string, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const answer = await fetch(url, { headers: { 'x-tenant': tenant }, signal: AbortSignal.timeout(20_000) });
    await answer.arrayBuffer();
    seen.push(answer.status);
  }
  return seen;
}
