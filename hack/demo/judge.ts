/** What is to become of a request. */
export interface Expectation {
  readonly status: number;
  /** What the RateLimit headers are to say; absent: there are to be none. */
  readonly counter?: {
    readonly limit: number;
    /** `some` is any number but 0. */
    readonly remaining: number | 'some';
    /** RateLimit-Reset is to be between 1 and this. */
    readonly windowSeconds: number;
  };
  /** Name of the rule that is to refuse it; absent: none. */
  readonly limitedBy?: string;
}

/** What became of a request. Headers that were not there are undefined. */
export interface Answer {
  readonly status: number;
  readonly limit: string | undefined;
  readonly remaining: string | undefined;
  readonly reset: string | undefined;
  /** The rule that refused it, when Tollgate did: its name, or `?` when the answer does not tell. */
  readonly limitedBy: string | undefined;
}

/** Reads an answer that came through Envoy. */
export function toAnswer(status: number, headers: Headers): Answer {
  const header = (name: string) => headers.get(name) ?? undefined;
  return {
    status,
    limit: header('ratelimit-limit'),
    remaining: header('ratelimit-remaining'),
    reset: header('ratelimit-reset'),
    limitedBy: header('x-limited-by') === undefined ? undefined : ruleName(header('x-ratelimit-limit')),
  };
}

/** Every difference between the two, in words; none when the answer is as expected. */
export function judge(expected: Expectation, answer: Answer): string[] {
  const { counter } = expected;
  return [
    ...differs('status', String(expected.status), String(answer.status)),
    ...differs('RateLimit-Limit', counter && String(counter.limit), answer.limit),
    ...(counter?.remaining === 'some'
      ? outOfRange('RateLimit-Remaining', answer.remaining, counter.limit)
      : differs('RateLimit-Remaining', counter && String(counter.remaining), answer.remaining)),
    ...(counter === undefined
      ? differs('RateLimit-Reset', undefined, answer.reset)
      : outOfRange('RateLimit-Reset', answer.reset, counter.windowSeconds)),
    ...differs('limited by', expected.limitedBy, answer.limitedBy),
  ];
}

/** What was expected, short enough for a table. */
export function describe({ status, counter, limitedBy }: Expectation): string {
  if (limitedBy !== undefined) return `${status} by ${limitedBy}`;
  if (counter === undefined) return `${status}, no limit`;
  return `${status}, ${counter.remaining} of ${counter.limit} left`;
}

/** What most likely went wrong, when the differences have one likely cause. */
export function guessCause(expected: Expectation, answer: Answer): string | undefined {
  if (answer.status === 200 && expected.counter !== undefined && answer.limit === undefined)
    return 'Envoy let it pass without an answer from the rate limit service, or no rule matched';
  if (answer.status >= 500) return 'Envoy could not reach the application';
  return undefined;
}

/** Envoy names the rules in its own header: `3, 3;w=3600;name="per-tenant"`, the strictest first. */
function ruleName(rateLimitHeader: string | undefined): string {
  return rateLimitHeader?.match(/;name="([^"]*)"/)?.[1] ?? '?';
}

function differs(what: string, expected: string | undefined, got: string | undefined): string[] {
  if (expected === got) return [];
  return [`${what} is ${got ?? 'absent'} instead of ${expected ?? 'absent'}`];
}

function outOfRange(what: string, got: string | undefined, most: number): string[] {
  if (got !== undefined && /^\d+$/.test(got) && Number(got) >= 1 && Number(got) <= most) return [];
  return [`${what} is ${got ?? 'absent'} instead of 1 to ${most}`];
}
