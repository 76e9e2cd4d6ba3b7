import { setTimeout as delay } from 'node:timers/promises';
import { type Admin, createAdmin } from './admin.ts';
import type { Ports } from './options.ts';
import { createPerson, type Person } from './story.ts';

interface TrafficOptions {
  readonly ports: Ports;
  readonly jwtSecret: string;
  readonly signal: AbortSignal;
}

/** Few enough that a terminal and a laptop stay quiet. */
const pauseMs = 700;

/**
 * Sends requests of several callers until the signal aborts, so that the console has something to
 * show: within limits, above them, and without a token.
 */
export async function sendTraffic({ ports, jwtSecret, signal }: TrafficOptions): Promise<void> {
  const gatewayUrl = `http://127.0.0.1:${ports.envoy}`;
  const authUrl = `http://127.0.0.1:${ports.authHttp}`;
  const admin = createAdmin({ url: authUrl, jwtSecret });
  const person = (name: string) => createPerson({ name, authUrl, mailboxUrl: `${authUrl}/dev/mail`, signal });
  try {
    const [carol, dan] = [person('carol'), person('dan')];
    await createUser(admin, carol, 'free');
    await createUser(admin, dan, 'pro');
    const get = createCaller(gatewayUrl, signal);
    // Carol is soon above the limit of the plan; Dan is not.
    const turns = [dan, dan, carol, dan, dan, undefined];
    for (let turn = 0; !signal.aborted; turn++) {
      await get(turns[turn % turns.length]);
      await delay(pauseMs, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function createUser(admin: Admin, { email, password }: Person, plan: string): Promise<void> {
  const id = await admin.createUser({ email, password });
  await admin.setAppMetadata(id, { plan });
}

/** Asks for the orders of a person, or without a token. */
function createCaller(gatewayUrl: string, signal: AbortSignal) {
  return async (person: Person | undefined): Promise<void> => {
    if (person?.token() === '') await person.signIn();
    const headers = person && { authorization: `Bearer ${person.token()}` };
    const response = await fetch(`${gatewayUrl}/orders`, { headers: headers ?? {}, signal });
    await response.arrayBuffer();
    // Tokens last for an hour.
    if (response.status === 401) await person?.signIn();
  };
}
