import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { readTextFile } from '@tollgate/kit/text-files';
import type { AddRoutes } from '../http/api.ts';
import {
  type KeySettings,
  leastSecretBytes,
  parseSigningKeys,
  type SigningKeys,
  shortSecrets,
} from './signing-keys.ts';

/** Keys that can be replaced while others use them. */
interface LiveKeys {
  /** Always those of now: to be asked anew each time, not taken apart and kept. */
  readonly keys: SigningKeys;
  /** From now on `keys` are these. */
  replace(keys: SigningKeys): void;
}

/** Creates {@link LiveKeys}. */
function createLiveKeys(first: SigningKeys): LiveKeys {
  let now = first;
  return {
    keys: {
      get current() {
        return now.current;
      },
      get byKid() {
        return now.byKid;
      },
      get fallback() {
        return now.fallback;
      },
      get algorithms() {
        return now.algorithms;
      },
    },
    replace(keys) {
      now = keys;
    },
  };
}

/** The settings that say where keys come from. */
export interface KeySourceSettings extends KeySettings {
  /** Empty for none: then the keys are `jwtKeys`. */
  readonly jwtKeysFile: string;
  readonly mode: 'production' | 'development';
}

/** Keys that follow where they come from. */
export interface SigningKeySource {
  /** Those of now. */
  readonly keys: SigningKeys;
  /** Follows JWT_KEYS_FILE, if there is one. */
  readonly watch: LifecycleComponent;
  /** Takes another value of JWT_KEYS; answers false, and logs why, when it is not used. */
  replace(jwtKeys: string): boolean;
}

/** A hundred RSA keys; what is longer is another file. */
const maxFileBytes = 256 * 1024;

/**
 * Reads the keys, and keeps the last good ones when their file changes into something else.
 *
 * @throws Error that names the file and says what is wrong with it, when the first ones are not good.
 */
export async function openSigningKeys(
  settings: KeySourceSettings,
  { logger }: { readonly logger: Logger },
): Promise<SigningKeySource> {
  const { jwtKeysFile: file } = settings;
  const variable = file === '' ? 'SVC_JWT_KEYS' : 'SVC_JWT_KEYS_FILE';
  let text = file === '' ? settings.jwtKeys : await readTextFile(file, maxFileBytes).catch(unreadable);
  const live = createLiveKeys(parse(text));
  if (settings.mode === 'production') warnOfShort(live.keys);

  function unreadable(cause: unknown): never {
    throw new Error(`SVC_JWT_KEYS_FILE ${file}: ${messageOf(cause)}`, { cause });
  }

  function parse(jwtKeys: string): SigningKeys {
    // An empty file is a mistake: its keys would be those of nobody, and JWT_SECRET would sign.
    const isEmptyFile = file !== '' && jwtKeys.trim() === '';
    const parsed = parseSigningKeys({ ...settings, jwtKeys: isEmptyFile ? '[]' : jwtKeys });
    if (parsed.ok) return parsed.keys;
    throw new Error(`${variable}${file === '' ? '' : ` ${file}`}: expected ${parsed.expected}`);
  }

  function warnOfShort(keys: SigningKeys): void {
    for (const key of shortSecrets(keys)) {
      const from = key === keys.fallback ? { variable: 'SVC_JWT_SECRET' } : { variable, kid: key.kid };
      logger.warn(
        { ...from, leastBytes: leastSecretBytes },
        'secret is short enough to be guessed: whoever does signs access tokens of anybody',
      );
    }
  }

  function replace(next: string): boolean {
    if (next === text) return true;
    const before = live.keys.current;
    try {
      live.replace(parse(next));
    } catch (error) {
      logger.error({ problem: messageOf(error) }, 'new signing keys not used, the last good ones stay');
      return false;
    }
    text = next;
    const { current, byKid } = live.keys;
    logger.info({ signs: current.kid, verify: [...byKid.keys()] }, 'signing keys changed');
    if (!byKid.has(before.kid))
      logger.warn({ kid: before.kid }, 'the key that signed until now is gone: its tokens are refused');
    if (settings.mode === 'production') warnOfShort(live.keys);
    return true;
  }

  let reads = 0;
  async function reload(): Promise<void> {
    reads += 1;
    const read = reads;
    const next = await readTextFile(file, maxFileBytes).catch((error: unknown) => {
      logger.error({ file, problem: messageOf(error) }, 'signing keys not read, the last good ones stay');
      return text;
    });
    // One that began later has seen the file as it is.
    if (read === reads) replace(next);
  }

  let watch: FileWatch | undefined;
  return {
    keys: live.keys,
    watch: {
      name: 'signing keys',
      async start() {
        if (file === '') return;
        watch = await watchFiles({ paths: [file], onChange: reload, logger });
        // What has changed between the first look and the watch.
        await reload();
      },
      stop: () => watch?.close(),
    },
    replace,
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Public keys of access tokens. @see RFC 7517 §5 https://www.rfc-editor.org/rfc/rfc7517#section-5 */
export const addKeyRoutes: AddRoutes = (api, { keys }) => {
  // Made anew each time: keys change while the server runs.
  const jwks = () => ({ keys: [...keys.byKid.values()].flatMap(({ publicJwk }) => publicJwk ?? []) });
  api.get('/.well-known/jwks.json', (_request, reply) =>
    reply.header('cache-control', 'public, max-age=600').send(jwks()),
  );
};
