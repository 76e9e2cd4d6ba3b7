import type { CodeChallenge } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { FlowMethod } from '../../ports/flow-store.ts';
import type { Services } from '../../services.ts';

/** A flow that a client asks for. */
export interface FlowRequest extends CodeChallenge {
  /** Absent where nobody is known by the address that was given. */
  readonly userId: string | undefined;
  /** What the session will say of how it came about. */
  readonly authenticationMethod: FlowMethod;
}

/** Keeps a challenge until the link that was sent is followed. Answers the id of the flow. */
export type StartFlow = (request: FlowRequest, facts: RequestFacts) => Promise<string>;

/** Creates {@link StartFlow}: one statement. */
export function createStartFlow({ store, random }: Pick<Services, 'store' | 'random'>): StartFlow {
  return async (request, facts) => {
    const id = random.uuid();
    await store.flows.start({ id, ...request, at: new Date(facts.nowMs) });
    return id;
  };
}
