/** The address of a peer without its port: what its connections have in common. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/, '');
}
