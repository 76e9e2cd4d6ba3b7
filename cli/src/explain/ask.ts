import { unwrap } from '@tollgate/admin-clients/clients';
import { type LoadedPolicies, loadPolicies } from '@tollgate/policies/files/load';
import { connectAuth, type Source } from '../connection/connect.ts';
import { CommandFailure } from '../failure.ts';
import { PolicySimulator, SimulationProblem } from '../policies/simulator.ts';
import { readSources, requireValid } from '../policies/sources.ts';
import { toIdentity } from '../policy-tests/callers.ts';
import { type CallerOptions, readCaller, toApiCaller } from './caller-options.ts';
import { describeOutcome, type Explanation, readExplanation } from './explanation.ts';

/** A request to explain. */
export interface ExplainedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly address: string | undefined;
  readonly policy: string | undefined;
}

interface Answer {
  readonly explanation: Explanation;
  /** All that is known, for programs. */
  readonly json: unknown;
}

/** Asks the auth server of the context. */
export async function askServer(
  source: Source,
  { method, url, headers, address, policy }: ExplainedRequest,
  { credential, ...caller }: CallerOptions & { readonly credential: string | undefined },
): Promise<Answer> {
  const body = {
    ...{ method, url, headers, ...toApiCaller(caller) },
    ...(address !== undefined && { address }),
    ...(policy !== undefined && { policy }),
    ...(credential !== undefined && { credential }),
  };
  const client = await connectAuth(source);
  const json = await unwrap(client.POST('/admin/policies/explain', { body }));
  return { explanation: readExplanation({ ...json }), json };
}

/** Decides by files, with counters that are as new. */
export async function askFiles(
  paths: readonly string[],
  { address = '192.0.2.1', ...request }: ExplainedRequest,
  options: CallerOptions,
): Promise<Answer> {
  const loaded = await readFiles(paths);
  const caller = readCaller(options);
  const simulator = new PolicySimulator(loaded, Date.now);
  try {
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const json = await simulator.decide({
      ...{ ...request, address, headers },
      caller: caller && toIdentity(caller),
    });
    return { explanation: describeOutcome(json, options.as ?? 'without a credential'), json };
  } catch (error) {
    if (error instanceof SimulationProblem) throw new CommandFailure(error.message);
    throw error;
  }
}

/** Limits of files, by domain. */
export async function readLimits(paths: readonly string[]): Promise<LoadedPolicies['limits']> {
  return (await readFiles(paths)).limits;
}

async function readFiles(paths: readonly string[]): Promise<LoadedPolicies> {
  return requireValid(loadPolicies(await readSources(paths, async () => '')));
}
