# Builds llama-bench for this processor, in the folder llama: the sources are in a package of PyPI.
set -e
package=llama_cpp_python-0.3.36
mkdir -p llama && cd llama
python3 -m venv tools
PATH=$PWD/tools/bin:$PATH
pip install -q --disable-pip-version-check cmake ninja scikit-build-core pathspec gguf
pip download -q --no-deps --no-binary :all: --no-build-isolation llama-cpp-python==${package#*-}
tar xf $package.tar.gz
cmake -G Ninja -S $package/vendor/llama.cpp -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
ninja -C build llama-bench
echo $package > version
