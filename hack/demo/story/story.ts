import type { Admin } from '../admin.ts';
import type { RuleStore } from '../rules/rule-store.ts';
import { timedFetch } from '../timed-fetch.ts';
import type { Person } from './person.ts';
import { type Names, type Reply, readReply } from './reply.ts';

/** Everybody and everything that the scenario is played with. */
export interface Story {
  readonly ada: Person;
  readonly bob: Person;
  readonly admin: Admin;
  readonly rules: RuleStore;
  /** Names of those who have signed up, by their ids. */
  names(): Names;
  /** Asks the shop for a page, through Envoy. */
  get(path: string, options?: GetOptions): Promise<Reply>;
}

/** How a page is asked for. */
export interface GetOptions {
  /** Sent as bearer token. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a story is made of. */
export interface StoryOptions extends Pick<Story, 'ada' | 'bob' | 'admin' | 'rules'> {
  /** Of Envoy, without a slash at the end. */
  readonly gatewayUrl: string;
  readonly signal: AbortSignal;
}

/** Puts a story together. */
export function createStory({ gatewayUrl, signal, ...cast }: StoryOptions): Story {
  const request = timedFetch(signal);
  return {
    ...cast,
    names: () => new Map([cast.ada, cast.bob].map((person) => [person.userId() ?? '', person.name])),
    async get(path, { token, headers = {} } = {}) {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return readReply(await request(`${gatewayUrl}${path}`, { headers: { ...headers, ...authorization } }));
    },
  };
}
