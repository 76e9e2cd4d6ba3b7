import { alignColumns } from '@tollgate/kit/table';
import { style, type Terminal } from '../output/terminal.ts';
import type { UpFile } from './file.ts';
import { type Administrator, consoleUrl } from './parts.ts';
import { authPath } from './policy.ts';

interface SummaryOptions {
  /** The file, which may be edited. */
  readonly path: string;
  /** Variables for other commands of tollgate. */
  readonly environmentFile: string;
  readonly administrator: Administrator;
}

/** Where everything is, and how to get a token. */
export function printSummary(
  terminal: Terminal,
  { upstream, ports }: UpFile,
  { path, environmentFile, administrator }: SummaryOptions,
): void {
  const gateway = `http://127.0.0.1:${ports.envoy}`;
  const rows = [
    ['console', `${consoleUrl(ports)}/`, `sign in: ${administrator.email}, ${administrator.password}`],
    ['your application', `${gateway}/`, `behind Envoy: http://${formatHost(upstream.host)}:${upstream.port}`],
    ['sign up, sign in', `${gateway}${authPath}/pages/sign-up`, `API: ${gateway}${authPath}/`],
    ['mailbox', `http://127.0.0.1:${ports.authHttp}/dev/mail`, 'mails are not sent'],
    ['policies and limits', `http://127.0.0.1:${ports.xdsAdmin}/`, 'what is in force'],
    ['Envoy', `http://127.0.0.1:${ports.envoyAdmin}/`, 'admin pages'],
  ];
  const credentials = `{"email":"me@example.com","password":"correct horse battery"}`;
  terminal.print(`
${alignColumns(rows).join('\n')}

${style(terminal, 'bold', 'Get a token, and use it:')}
  TOKEN=$(curl -s ${gateway}${authPath}/signup -d '${credentials}' | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
  curl -i -H "authorization: Bearer $TOKEN" ${gateway}/
${style(terminal, 'bold', 'See who uses it, in another terminal:')}
  . ${environmentFile} && tollgate top
${style(terminal, 'bold', 'Change a route or a limit:')} ${path}. It is in force once it is saved. Ctrl-C stops everything.

`);
}

function formatHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
