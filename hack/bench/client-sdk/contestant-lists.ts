import type { Work } from './measure-round.ts';
import { requestContestants } from './request-contestants.ts';
import { tokenContestants } from './token-contestants.ts';

/** What is compared, each with bare `fetch` in the first place, by the origin of the server. */
export const contestantLists = {
  tokens: tokenContestants,
  requests: (origin: string) => requestContestants(origin),
  requestsWithoutNetwork: (origin: string) => requestContestants(origin, answerAtOnce),
} as const satisfies Record<string, (origin: string) => readonly Work[]>;

/** A name of {@link contestantLists}. */
export type ContestantList = keyof typeof contestantLists;

/** Is there such a list? */
export function isContestantList(name: string): name is ContestantList {
  return Object.hasOwn(contestantLists, name);
}

function answerAtOnce(): Promise<Response> {
  return Promise.resolve(
    new Response('{"id":7,"name":"a resource"}', { headers: { 'content-type': 'application/json' } }),
  );
}
