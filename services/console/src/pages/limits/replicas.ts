import type { LimiterClient, LimiterSchemas as Schemas } from '@tollgate/admin-clients/clients';
import type { Html } from '@tollgate/kit/html';
import { compareText } from '@tollgate/kit/text';
import { errors } from '../../errors.ts';
import { type Answers, toAnswers } from '../../http/problems.ts';
import type { Visit } from '../../http/visit.ts';
import type { Request } from '../../services/session-clients.ts';
import { problem } from '../../ui/messages.ts';

export type { Schemas };

/** Sends a request to every replica of the rate limit service. */
export async function askLimiters<T>(visit: Visit, request: Request<LimiterClient, T>): Promise<Answers<T>> {
  const results = await visit.services.limiters(request);
  return results.length === 0 ? { values: [], problems: [noLimiters] } : toAnswers(results, visit);
}

/** The problems of several requests, each once: a replica that is down fails all of them. */
export function mergeProblems(answers: readonly Pick<Answers<unknown>, 'problems'>[]): readonly Html[] {
  const byMarkup = new Map(answers.flatMap(({ problems }) => problems).map((one) => [String(one), one]));
  return [...byMarkup.values()];
}

const noLimiters = problem({
  title: 'No rate limit service',
  text: 'The console knows no counter API. Set CONSOLE_LIMITER_URLS, and ADMIN_PORT of the rate limit services.',
  command: 'CONSOLE_LIMITER_URLS=http://127.0.0.1:6071',
});

/**
 * Changes all replicas, since counters in memory are of one replica each; with Redis the change is
 * the same one.
 *
 * @throws ServiceError when any replica fails, which has the reason; AppError `no_limiters`
 */
export async function changeLimiters<T>(visit: Visit, request: Request<LimiterClient, T>): Promise<void> {
  const results = await visit.services.limiters(request);
  if (results.length === 0) throw errors.no_limiters();
  for (const { result } of results) if (!result.ok) throw result.error;
}

interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
}

/**
 * Merges the same page of all replicas, sorted by name. A replica whose page ends earlier ends the
 * merged page, so that the next one misses nothing.
 */
export function mergePages<T>(
  pages: readonly Page<T>[],
  toName: (item: T) => string,
  merge: (a: T, b: T) => T,
): Page<T> {
  const ends = pages.flatMap(({ next }) => next ?? []).sort(compareText);
  const byName = new Map<string, T>();
  for (const item of pages.flatMap(({ items }) => items)) {
    const known = byName.get(toName(item));
    byName.set(toName(item), known === undefined ? item : merge(known, item));
  }
  const [end] = ends;
  const items = [...byName.entries()]
    .filter(([name]) => end === undefined || compareText(name, end) <= 0)
    .sort(([a], [b]) => compareText(a, b))
    .map(([, item]) => item);
  return { items, next: end };
}

/** The counter of the replica that is the fullest: with Redis, all have the same one. */
export function fullest(counters: readonly Schemas['Counter'][]): Schemas['Counter'] | undefined {
  return counters.reduce<Schemas['Counter'] | undefined>(
    (most, one) => (most === undefined || one.count > most.count ? one : most),
    undefined,
  );
}
