import { freePort } from './free-port.ts';

/** Two processes choosing the same port at the same moment is rare; three times in a row it is a different problem. */
const attempts = 3;

/** Starts something on a free port; again on another one when somebody else took the port meanwhile. */
export async function withFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || attempt === attempts) throw error;
    }
  }
}
