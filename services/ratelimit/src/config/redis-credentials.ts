import type { SettingProblem, SettingsCheck } from '@tollgate/kit/settings';
import type { counterSettings } from './ratelimit.ts';
import { hasCredentials, parseRedisTarget } from './redis-target.ts';
import type { redisSettings } from './stores.ts';

type Check = SettingsCheck<typeof counterSettings & typeof redisSettings>;
type Instance = 'redis' | 'redisPerSecond';
type Context = Parameters<Check>[1];
type Values = Parameters<Check>[0];

/** A check of the credentials of an instance that is in use. */
type InstanceCheck = (instance: Instance, s: Values, context: Context) => SettingProblem | undefined;

/**
 * `AUTH` overrides the credentials of a URL, as in envoyproxy/ratelimit; other sources exclude each
 * other.
 */
const oneSource: InstanceCheck = (instance, s, { problem, variableName }) => {
  const sources = [`${instance}Auth`, `${instance}AuthFile`, `${instance}AuthCommand`] as const;
  const [first, second] = sources.filter((source) => s[source] !== '');
  const target = parseRedisTarget(s[`${instance}Type`], s[`${instance}Url`], s[`${instance}SocketType`]);
  if (first !== undefined && second !== undefined) {
    return problem(
      second,
      `nothing, because ${variableName(first)} is set, and there is one source of credentials`,
    );
  }
  return first !== undefined && first !== `${instance}Auth` && target.ok && hasCredentials(target.target)
    ? problem(first, `nothing, because ${variableName(`${instance}Url`)} has credentials already`)
    : undefined;
};

const usernameNeedsPassword: InstanceCheck = (instance, s, { problem, variableName }) =>
  s[`${instance}AuthUsernameFile`] !== '' && s[`${instance}AuthFile`] === ''
    ? problem(
        `${instance}AuthFile`,
        `a file with the password, because ${variableName(`${instance}AuthUsernameFile`)} is set`,
      )
    : undefined;

const commandIsOne: InstanceCheck = (instance, s, { problem }) =>
  s[`${instance}AuthCommand`] !== '' && parseProgram(s[`${instance}AuthCommand`]) === undefined
    ? problem(
        `${instance}AuthCommand`,
        'a program with its arguments, separated by blanks, or a list of texts in JSON',
      )
    : undefined;

const oneSentinelSource: InstanceCheck = (instance, s, { problem, variableName }) =>
  s[`${instance}SentinelAuth`] !== '' && s[`${instance}SentinelAuthFile`] !== ''
    ? problem(
        `${instance}SentinelAuthFile`,
        `nothing, because ${variableName(`${instance}SentinelAuth`)} is set, and there is one source of credentials`,
      )
    : undefined;

const instanceChecks = [oneSource, usernameNeedsPassword, commandIsOne, oneSentinelSource];

export const redisCredentialChecks: readonly Check[] = instanceChecks.flatMap((check): Check[] => [
  (s, context) => (s.backendType === 'redis' ? check('redis', s, context) : undefined),
  (s, context) =>
    s.backendType === 'redis' && s.redisPerSecond ? check('redisPerSecond', s, context) : undefined,
]);

export interface Program {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Parses KVSTORE_AUTH_COMMAND: words separated by blanks, or a list of texts in JSON for words with
 * blanks. There is no shell: quotes, variables and pipes have no meaning. Undefined when invalid.
 */
export function parseProgram(text: string): Program | undefined {
  const words = text.trimStart().startsWith('[') ? parseWords(text) : text.split(/\s+/).filter(Boolean);
  const [file, ...args] = words ?? [];
  return file === undefined || file === '' ? undefined : { file, args };
}

function parseWords(text: string): readonly string[] | undefined {
  try {
    const words: unknown = JSON.parse(text);
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined;
  } catch {
    return undefined;
  }
}
