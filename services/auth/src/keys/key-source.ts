import { getErrorMessage } from '@tollgate/kit/errors';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import {
  type KeySummary,
  keyOfSecret,
  maxKeyFileBytes,
  parseStoredKeys,
  summarizeKeys,
} from '@tollgate/kit/signing-keys';
import { readTextFile } from '@tollgate/kit/text-files';
import {
  type KeySettings,
  leastSecretBytes,
  parseSigningKeys,
  type SigningKeys,
  shortSecrets,
} from './signing-keys.ts';

export interface KeySourceSettings extends KeySettings {
  /** Empty: the keys are `jwtKeys`. */
  readonly jwtKeysFile: string;
  readonly mode: 'production' | 'development';
}

/** The signing keys, for operators. */
interface KeyOverview {
  /** The setting that has them. */
  readonly variable: string;
  readonly file?: string;
  readonly keys: readonly KeySummary[];
}

/**
 * The signing keys, which can be replaced while the service runs. An invalid replacement is logged
 * and ignored.
 */
export class SigningKeySource implements LifecycleComponent {
  readonly name = 'signing keys';
  /** The current keys. A replacement changes the members of this object. */
  readonly keys: SigningKeys;
  readonly #settings: KeySourceSettings;
  readonly #logger: Logger;
  #text: string;
  #reads = 0;
  #watch: FileWatch | undefined;

  private constructor(settings: KeySourceSettings, logger: Logger, text: string) {
    this.#settings = settings;
    this.#logger = logger;
    this.#text = text;
    this.keys = this.#parse(text);
    this.#warnOfShortSecrets();
  }

  /** @throws Error that names the variable, and the file, if the keys are invalid. */
  static async open(
    settings: KeySourceSettings,
    { logger }: { readonly logger: Logger },
  ): Promise<SigningKeySource> {
    const { jwtKeysFile: file } = settings;
    if (file === '') return new SigningKeySource(settings, logger, settings.jwtKeys);
    const text = await readTextFile(file, maxKeyFileBytes).catch((cause: unknown) => {
      throw new Error(`SVC_JWT_KEYS_FILE ${file}: ${getErrorMessage(cause)}`, { cause });
    });
    return new SigningKeySource(settings, logger, text);
  }

  /** Watches JWT_KEYS_FILE, if it is set. */
  async start(): Promise<void> {
    const { jwtKeysFile: file } = this.#settings;
    if (file === '') return;
    this.#watch = await watchFiles({ paths: [file], onChange: () => this.#reload(), logger: this.#logger });
    // The file may have changed before the watch started.
    await this.#reload();
  }

  stop(): void {
    this.#watch?.close();
  }

  /** Replaces JWT_KEYS. Logs an error and returns false if the new value is invalid. */
  replace(jwtKeys: string): boolean {
    if (jwtKeys === this.#text) return true;
    const previous = this.keys.current;
    try {
      const { verifiedMs, fallback } = this.keys;
      Object.assign(this.keys, this.#parse(jwtKeys), { verifiedMs });
      // The first rotation gives JWT_SECRET an id.
      const usedMs = verifiedMs.get(fallback.kid);
      if (usedMs !== undefined) verifiedMs.set(this.keys.fallback.kid, usedMs);
    } catch (error) {
      this.#logger.error(
        { problem: getErrorMessage(error) },
        'rejected new signing keys, keeping the last good ones',
      );
      return false;
    }
    this.#text = jwtKeys;
    const { current, byKid } = this.keys;
    this.#logger.info({ signs: current.kid, verify: [...byKid.keys()] }, 'replaced signing keys');
    if (!byKid.has(previous.kid))
      this.#logger.warn({ kid: previous.kid }, 'removed the previous signing key, its tokens are rejected');
    this.#warnOfShortSecrets();
    return true;
  }

  /** The keys without the keys themselves, and the setting that they are from. */
  describe(): KeyOverview {
    const { jwtKeysFile: file, jwtSecret, jwtKeyId } = this.#settings;
    const isSecretAlone = this.#text.trim() === '';
    const parsed = parseStoredKeys(this.#text);
    // The tokens of the secret have no `kid` if there is none.
    const secret = { ...keyOfSecret(jwtSecret, jwtKeyId), kid: jwtKeyId };
    const keys = parsed.ok && !isSecretAlone ? parsed.keys : [secret];
    return {
      variable: isSecretAlone ? 'SVC_JWT_SECRET' : this.#variable(),
      ...(file !== '' && { file }),
      keys: summarizeKeys(keys),
    };
  }

  async #reload(): Promise<void> {
    const { jwtKeysFile: file } = this.#settings;
    this.#reads += 1;
    const read = this.#reads;
    const text = await readTextFile(file, maxKeyFileBytes).catch((error: unknown) => {
      this.#logger.error(
        { file, problem: getErrorMessage(error) },
        'failed to read signing keys, keeping the last good ones',
      );
      return this.#text;
    });
    // A read that started later has newer content.
    if (read === this.#reads) this.replace(text);
  }

  #parse(jwtKeys: string): SigningKeys {
    const { jwtKeysFile: file } = this.#settings;
    // With an empty file, JWT_SECRET would sign tokens.
    const isEmptyFile = file !== '' && jwtKeys.trim() === '';
    const parsed = parseSigningKeys({ ...this.#settings, jwtKeys: isEmptyFile ? '[]' : jwtKeys });
    if (parsed.ok) return parsed.keys;
    throw new Error(`${this.#variable()}${file === '' ? '' : ` ${file}`}: expected ${parsed.expected}`);
  }

  #warnOfShortSecrets(): void {
    if (this.#settings.mode !== 'production') return;
    for (const key of shortSecrets(this.keys)) {
      const source =
        key === this.keys.fallback
          ? { variable: 'SVC_JWT_SECRET' }
          : { variable: this.#variable(), kid: key.kid };
      this.#logger.warn(
        { ...source, leastBytes: leastSecretBytes },
        'secret is too short, tokens can be forged by brute force',
      );
    }
  }

  #variable(): string {
    return this.#settings.jwtKeysFile === '' ? 'SVC_JWT_KEYS' : 'SVC_JWT_KEYS_FILE';
  }
}
