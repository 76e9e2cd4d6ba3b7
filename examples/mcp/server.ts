// An MCP server of the official SDK, without code for sign-in: only calls that the policy allows
// pass the gateway, which says who calls.
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const orders = ['1 lamp', '2 chairs'];

const server = createServer(async (request, response) => {
  if (request.url === '/health') return void response.end('ok');
  const mcp = new McpServer({ name: 'shop', version: '1.0.0' });
  mcp.registerTool('orders', { description: 'Lists the orders of the user' }, () => {
    const { 'x-auth-user-id': user, 'x-auth-client-id': client } = request.headers;
    return { content: [{ type: 'text', text: `${orders.join(', ')} (user ${user}, client ${client})` }] };
  });
  const transport = new StreamableHTTPServerTransport({});
  response.once('close', () => void mcp.close());
  await mcp.connect(transport as Parameters<McpServer['connect']>[0]); // optional members of the SDK
  await transport.handleRequest(request, response);
});

// Only the gateway may reach it.
server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1');
