import { getErrorMessage } from '@tollgate/kit/errors';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { readTextFile } from '@tollgate/kit/text-files';
import { parseRedisAuth, type RedisCredentials } from '../../../config/redis-target.ts';
import { type CredentialHooks, type CredentialSource, Login } from './login.ts';

export interface CredentialFiles {
  /** `password` or `user:password`; the password alone with a file for the user name. */
  readonly authFile: string;
  /** Empty for none. */
  readonly usernameFile: string;
}

/** Tokens of cloud providers have a few kilobytes. */
const maxBytes = 64 * 1024;

/**
 * Reads credentials from files and follows their changes.
 *
 * @throws Error naming the file that cannot be used.
 */
export async function watchCredentialFiles(
  files: CredentialFiles,
  { logger, ...hooks }: CredentialHooks & { readonly logger: Logger },
): Promise<CredentialSource> {
  const login = new Login();
  const reload = async (): Promise<void> => {
    try {
      if (login.replace(await readCredentials(files))) hooks.onReloaded();
    } catch (error) {
      hooks.onError(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const paths = [files.authFile, files.usernameFile].filter((path) => path !== '');
  // The watch first: files that change while they are read are read again.
  const firstRead = Promise.withResolvers<void>();
  const watch: FileWatch = await watchFiles({
    paths,
    logger,
    onChange: () => firstRead.promise.then(reload),
  });
  try {
    login.replace(await readCredentials(files));
  } catch (error) {
    watch.close();
    throw error;
  }
  firstRead.resolve();
  return {
    login,
    start: () => Promise.resolve(),
    close: () => watch.close(),
    lastError: () => undefined,
  };
}

async function readCredentials({ authFile, usernameFile }: CredentialFiles): Promise<RedisCredentials> {
  const auth = await readLine(authFile);
  if (usernameFile !== '') return { username: await readLine(usernameFile), password: auth };
  const credentials = parseRedisAuth(auth);
  if (credentials === undefined || credentials.password === '')
    throw new Error(`${authFile} has no password`);
  return credentials;
}

async function readLine(path: string): Promise<string> {
  let text: string;
  try {
    text = await readTextFile(path, maxBytes);
  } catch (cause) {
    throw new Error(`${path} cannot be read: ${getErrorMessage(cause)}`, { cause });
  }
  // Editors and `kubectl create secret --from-file` leave a newline at the end.
  const line = text.replace(/\r?\n$/, '');
  if (line === '') throw new Error(`${path} is empty`);
  if (/[\r\n]/.test(line)) throw new Error(`${path} has more than one line`);
  return line;
}
