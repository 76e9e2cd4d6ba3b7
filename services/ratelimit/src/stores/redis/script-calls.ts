import { getMaxDebt, type Rate } from '@tollgate/rules/rule-set';
import type { CounterResult, Taken } from '../../algorithms/algorithm.ts';
import { fixedWindow, toUncountedResult, toWindowResult } from '../../algorithms/fixed-window.ts';
import { toRateResult } from '../../algorithms/registry.ts';
import type { AllOrNone, ConditionalHit } from '../all-or-none.ts';
import type { Batch, BatchCounter, WholeRequest } from '../batch.ts';
import { type Pipeline, type RedisReply, RedisReplyError } from './resp.ts';
import { refund, type Script, takeAll, takeEach } from './scripts.ts';

/** Counters, or whole requests, that one call of a script decides. */
export interface ScriptCall {
  readonly script: Script;
  readonly counters: readonly BatchCounter[];
  readonly requests: readonly WholeRequest[];
}

/**
 * Groups the counters that INCRBY cannot change into calls of at most `maxKeys` keys. Calls with
 * the same key stay in order.
 */
export function groupCalls(
  { scripts, requests }: Pick<Batch, 'scripts' | 'requests'>,
  maxKeys: number,
): readonly ScriptCall[] {
  const calls: ScriptCall[] = [];
  let open: BatchCounter[] | undefined;
  for (const counter of scripts) {
    if (counter.rate === undefined) {
      calls.push({ script: refund, counters: [counter], requests: [] });
      continue;
    }
    if (open === undefined || open.length >= maxKeys || counter.isRepeated) {
      open = [];
      calls.push({ script: takeEach, counters: open, requests: [] });
    }
    open.push(counter);
  }
  return [...calls, ...groupRequests(requests, maxKeys)];
}

/** A request with more keys is a call of its own. */
function groupRequests(requests: readonly WholeRequest[], maxKeys: number): readonly ScriptCall[] {
  const calls: ScriptCall[] = [];
  let open: WholeRequest[] = [];
  let keys = 0;
  for (const request of requests) {
    keys += request.hits.length;
    if (open.length === 0 || keys > maxKeys) {
      open = [];
      keys = request.hits.length;
      calls.push({ script: takeAll, counters: [], requests: open });
    }
    open.push(request);
  }
  return calls;
}

/**
 * Writes the call, with the text of the script unless the connection has sent it before. Returns
 * the position of its reply. Tests pass a time.
 */
export function writeCall(
  pipeline: Pipeline,
  { script, counters, requests }: ScriptCall,
  { knownScripts, nowUs }: { readonly knownScripts: Set<string>; readonly nowUs?: number },
): number {
  // ASKING applies to the next command only; redirected calls have one key.
  if (counters[0]?.asking === true) pipeline.command('ASKING');
  const position = pipeline.commandCount;
  const clockWords = script === refund ? 0 : 1;
  let keys = counters.length;
  for (const { hits } of requests) keys += hits.length;
  const argumentWords = counters.length + requests.length + (keys - counters.length) * 3;
  pipeline.begin(3 + keys + clockWords + argumentWords);
  if (knownScripts.has(script.sha)) {
    pipeline.word('EVALSHA');
    pipeline.word(script.sha);
  } else {
    pipeline.word('EVAL');
    pipeline.word(script.text);
    knownScripts.add(script.sha);
  }
  pipeline.integer(keys);
  for (const { key } of counters) pipeline.word(key);
  for (const { hits } of requests) for (const { key } of hits) pipeline.word(key);
  if (clockWords > 0) pipeline.word(nowUs === undefined ? '' : String(nowUs));
  for (const { rate, addend, times } of counters) {
    if (rate === undefined) pipeline.integer(-addend);
    else pipeline.word(callText(rate, addend / times, times));
  }
  for (const { hits } of requests) {
    pipeline.integer(hits.length);
    for (const hit of hits) {
      const { rate, addend, capacity, ttlSeconds, refuses } = hit;
      const debt = hit.charge === 'always' ? '0' : '-';
      pipeline.word(
        rate === undefined
          ? `${fixedWindow.name} ${capacity} 0 0 ${debt} ${addend} 1`
          : callText(rate, addend, 1),
      );
      pipeline.word(refuses);
      pipeline.integer(ttlSeconds);
    }
  }
  return position;
}

function callText(rate: Rate, hits: number, times: number): string {
  const { algorithm, limit, periodSeconds, burst } = rate;
  return `${algorithm} ${limit} ${periodSeconds} ${burst} ${getMaxDebt(rate) ?? '-'} ${hits} ${times}`;
}

/**
 * Results of the counters of a call by its reply, or the reason why one cannot be counted;
 * undefined when the reply is of another form.
 */
export function readCallReply(
  { counters }: ScriptCall,
  reply: RedisReply,
): readonly (Taken | RedisReplyError)[] | undefined {
  if (!Array.isArray(reply) || reply.length !== counters.length * 3) return undefined;
  const results: (Taken | RedisReplyError)[] = [];
  for (let at = 0; at < reply.length; at += 3) {
    const [taken, remaining, waitSeconds]: unknown[] = [reply[at], reply[at + 1], reply[at + 2]];
    if (taken instanceof RedisReplyError) {
      results.push(taken);
      continue;
    }
    if (typeof taken !== 'number' || typeof remaining !== 'number' || typeof waitSeconds !== 'number') {
      return undefined;
    }
    results.push({ taken, remaining, waitSeconds });
  }
  return results;
}

/**
 * The results of the requests of a call, undefined for those with a key that has no counter;
 * undefined when the reply is of another form.
 */
export function readRequestReplies(
  { requests }: ScriptCall,
  reply: RedisReply,
): readonly (AllOrNone | undefined)[] | undefined {
  if (!Array.isArray(reply)) return undefined;
  const numbers: number[] = reply.filter((value) => typeof value === 'number');
  let at = 0;
  const results = requests.map(({ hits }) => {
    const [status] = numbers.slice(at);
    const rows = hits.map((_, i) => numbers.slice(at + 1 + i * 3, at + 4 + i * 3));
    at += 1 + hits.length * 3;
    if (status === 2) return undefined;
    const refused = status === 1;
    return { refused, results: hits.map((hit, i) => readHitReply(hit, refused, rows[i] ?? [])) };
  });
  return at === reply.length && at === numbers.length ? results : undefined;
}

/** The count of a window is that without its hits where they were not counted. */
function readHitReply(
  hit: ConditionalHit,
  refused: boolean,
  [taken = 0, left = 0, waitSeconds = 0]: readonly number[],
): CounterResult {
  if (hit.rate !== undefined) return toRateResult(hit, { taken, remaining: left, waitSeconds });
  return refused && hit.charge !== 'always'
    ? toUncountedResult(hit, left, taken > 0)
    : { ...toWindowResult(hit, left), allowed: taken > 0 };
}
