import type { Services } from '../../services.ts';

/** Can requests be served? */
export type CheckReady = () => Promise<boolean>;

/** Whoever asks gives up soon: Kubernetes after a second unless told otherwise. */
const timeoutMs = 900;

/**
 * Creates {@link CheckReady}: queries the database. Concurrent checks share one query, however long
 * it takes. The first failure after a success is logged.
 */
export function createCheckReady({ store, logger }: Pick<Services, 'store' | 'logger'>): CheckReady {
  let asked: Promise<boolean> | undefined;
  let isFailing = false;

  async function ask(): Promise<boolean> {
    try {
      await store.ping();
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) logger.warn({ err: error }, 'not ready');
      isFailing = true;
      return false;
    } finally {
      asked = undefined;
    }
  }

  return async () => {
    asked ??= ask();
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), timeoutMs);
    try {
      return await Promise.race([asked, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
