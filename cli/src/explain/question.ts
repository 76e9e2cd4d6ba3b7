import { type LoggedRequest, parseAccessLog } from '@tollgate/policies/read/access-log';
import { CommandFailure } from '../failure.ts';

/** A request, or descriptors of a domain. */
export type Question =
  | {
      readonly kind: 'request';
      readonly method: string;
      readonly url: string;
      /** The line of the access log that it is from. */
      readonly logged?: LoggedRequest;
    }
  | { readonly kind: 'descriptors'; readonly domain: string; readonly descriptors: readonly string[] };

const methodForm = /^[A-Za-z-]+$/;
const urlForm = /^https?:\/\/[^/\s]+(?:\/\S*)?$/i;

/**
 * Reads a method and a URL, a domain and descriptors, or a line of an access log.
 *
 * @param host stands for the authority of a line that has none
 * @throws CommandFailure
 */
export function readQuestion(args: readonly string[], host: string | undefined): Question {
  const [first = '', second, ...others] = args;
  if (second === undefined) return readLine(first, host);
  if (urlForm.test(second) && methodForm.test(first) && others.length === 0)
    return { kind: 'request', method: first, url: second };
  // The shell has split a line that was pasted without quotes.
  const logged = parseAccessLog(args.join(' '));
  if (logged !== undefined) return toRequest(logged, host);
  const descriptors = args.slice(1);
  if (descriptors.every((text) => text.includes('=') || text.startsWith('[')))
    return { kind: 'descriptors', domain: first, descriptors };
  throw new CommandFailure(
    'expected a method and a URL, a domain and descriptors such as user=ann, or a line of an access log in quotes',
  );
}

function readLine(line: string, host: string | undefined): Question {
  const logged = parseAccessLog(line);
  if (logged === undefined)
    throw new CommandFailure(
      'not a line of an access log in the default format of Envoy, or in JSON with method, path and authority: paste it in quotes, or on standard input with -',
    );
  return toRequest(logged, host);
}

function toRequest(logged: LoggedRequest, host: string | undefined): Question {
  const authority = logged.authority || host;
  if (authority === undefined)
    throw new CommandFailure('the line does not say the host: add --host api.example.com');
  const path = logged.path.startsWith('/') ? logged.path : `/${logged.path}`;
  return { kind: 'request', method: logged.method, url: `https://${authority}${path}`, logged };
}
