// A web application without code for sign-in: the gateway says who calls.
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { html } from '@tollgate/kit/html';

/** Notes by user. */
const notes = new Map<string, string[]>();

const server = createServer(async (request, response) => {
  if (request.url === '/health') return void response.end('ok');
  const { 'x-auth-user-id': user = '', 'x-auth-plan': plan } = request.headers;
  const own = notes.get(String(user)) ?? [];
  if (request.method === 'POST') {
    notes.set(String(user), [...own, await readNote(request)]);
    return void response.writeHead(303, { location: '/' }).end();
  }
  const page = html`<!doctype html>
<title>Notes</title>
<h1>Notes</h1>
<p>Signed in as ${String(user)}, plan ${String(plan)}. <a href="/.tollgate/sign-out">Sign out</a></p>
<ul>${own.map((note) => html`<li>${note}</li>`)}</ul>
<form method="post"><label>Note <input name="note" maxlength="100" required></label> <button>Add</button></form>
`;
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page.toString());
});

async function readNote(request: IncomingMessage): Promise<string> {
  return new URLSearchParams(await text(request)).get('note') ?? '';
}

// Only the gateway may reach it.
server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1');
