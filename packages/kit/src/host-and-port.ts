/** Writes `host:port`, with the brackets that an IPv6 address needs (RFC 3986 §3.2.2). */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`;
}
