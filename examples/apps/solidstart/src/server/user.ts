/** Who sends a request: this comes from your own authentication. A program with one user uses a fixed name. */
export async function userId(): Promise<string> {
  return 'single-user'
}
